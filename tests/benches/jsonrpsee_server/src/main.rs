//! jsonrpsee's own WebSocket server with a subscription of as many items as are asked for. Its port goes to the file that
//! the first argument names.

use std::path::PathBuf;

use serde_json::json;

/// As in the daemon.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The text of each item.
const TEXT: &str = "hello world 0123456789";

fn main() {
    let port_file = PathBuf::from(std::env::args_os().nth(1).expect("the file for the port is named"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("the system gives threads");
    runtime.block_on(async {
        let server = jsonrpsee::server::Server::builder().build("127.0.0.1:0").await.expect("there is a free port");
        let mut module = jsonrpsee::RpcModule::new(());
        module
            .register_subscription("subscribe", "item", "unsubscribe", |params, pending, _, _| async move {
                let items: u64 = params.one()?;
                let sink = pending.accept().await?;
                for seq in 0..items {
                    let item = json!({"call_id": "c", "seq": seq, "kind": "message", "text": TEXT});
                    sink.send(serde_json::value::to_raw_value(&item)?).await?;
                }
                Ok(())
            })
            .expect("the name is free");
        let beside = port_file.with_extension("new");
        let port = server.local_addr().expect("it listens").port();
        std::fs::write(&beside, port.to_string()).expect("the folder is there");
        std::fs::rename(&beside, &port_file).expect("the folder is there");
        server.start(module).stopped().await;
    });
}
