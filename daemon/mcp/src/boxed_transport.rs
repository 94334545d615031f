//! A transport of any kind as one type, so that the SDK's code is compiled once for all of them.

use std::borrow::Cow;
use std::fmt;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;

pub(crate) struct BoxedTransport<R: ServiceRole>(Box<dyn ErasedTransport<R>>);

impl<R: ServiceRole> BoxedTransport<R> {
    pub(crate) fn new(transport: impl Transport<R> + 'static) -> Self {
        Self(Box::new(transport))
    }
}

/// An error of the transport inside, which is its source.
#[derive(Debug)]
pub(crate) struct BoxedTransportError(Box<dyn std::error::Error + Send + Sync>);

impl fmt::Display for BoxedTransportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for BoxedTransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.0.as_ref())
    }
}

/// The methods of [`Transport`], with boxed futures.
trait ErasedTransport<R: ServiceRole>: Send {
    fn send(&mut self, message: TxJsonRpcMessage<R>) -> BoxFuture<'static, Result<(), BoxedTransportError>>;
    fn receive(&mut self) -> BoxFuture<'_, Option<RxJsonRpcMessage<R>>>;
    fn close(&mut self) -> BoxFuture<'_, Result<(), BoxedTransportError>>;
}

impl<R: ServiceRole, T: Transport<R>> ErasedTransport<R> for T {
    fn send(&mut self, message: TxJsonRpcMessage<R>) -> BoxFuture<'static, Result<(), BoxedTransportError>> {
        let sent = Transport::send(self, message);
        async move { sent.await.map_err(|error| BoxedTransportError(Box::new(error))) }.boxed()
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<RxJsonRpcMessage<R>>> {
        Transport::receive(self).boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), BoxedTransportError>> {
        async { Transport::close(self).await.map_err(|error| BoxedTransportError(Box::new(error))) }.boxed()
    }
}

impl<R: ServiceRole> Transport<R> for BoxedTransport<R> {
    type Error = BoxedTransportError;

    fn name() -> Cow<'static, str> {
        "connection".into()
    }

    fn send(&mut self, message: TxJsonRpcMessage<R>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(message)
    }

    /// Cancel-safe where the transport inside is.
    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<R>>> + Send {
        self.0.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.close()
    }
}
