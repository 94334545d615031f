//! Batches against a simple model of their rules, over random mixes.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use toold_engine::Engine;
use toold_engine::batch::execute_batch;
use toold_engine::call::{Call, CallError};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::session::Session;
use toold_engine::tool::{Origin, ToolError, ToolOutput};
use toold_proto::call::Strategy as Order;
use toold_proto::tool::SourceKind;
use toold_test_kit::{SampleTool, new_session, person, prepare_call};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchStep {
    Start(usize),
    End(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallEnd {
    Fine,
    Error,
    Panic,
    Interrupt,
    Cancelled,
}

/// Writes down when its calls start and end, and ends as its input says.
fn recorder(name: &str, parallelizable: bool, log: &Arc<Mutex<Vec<BatchStep>>>) -> Arc<dyn Callable> {
    let log = log.clone();
    let tool = SampleTool::new(name).spec(|spec| spec.parallelizable = parallelizable);
    Arc::new(tool.run(move |input, cx| record(log.clone(), input, cx).boxed()))
}

async fn record(log: Arc<Mutex<Vec<BatchStep>>>, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
    let place = input["place"].as_u64().unwrap() as usize;
    log.lock().unwrap().push(BatchStep::Start(place));
    for _ in 0..input["yields"].as_u64().unwrap() {
        tokio::task::yield_now().await;
    }
    log.lock().unwrap().push(BatchStep::End(place));
    match input["end"].as_str().unwrap() {
        "Error" => Err(ToolError::Failed("bad news".into())),
        "Panic" => panic!("on purpose"),
        "Interrupt" => {
            cx.session.interrupt();
            Ok(ToolOutput::text("interrupted"))
        }
        "Cancelled" => {
            cx.session.cancel(&cx.call_id);
            cx.cancel.cancelled().await;
            Err(ToolError::Cancelled)
        }
        _ => Ok(ToolOutput::text("fine")),
    }
}

#[derive(Clone, Debug)]
struct Planned {
    parallelizable: bool,
    yields: u8,
    end: CallEnd,
}

fn planned() -> impl Strategy<Value = Planned> {
    let end = prop_oneof![
        6 => Just(CallEnd::Fine),
        1 => Just(CallEnd::Error),
        1 => Just(CallEnd::Panic),
        1 => Just(CallEnd::Interrupt),
        1 => Just(CallEnd::Cancelled),
    ];
    (any::<bool>(), 0u8..4, end).prop_map(|(parallelizable, yields, end)| Planned { parallelizable, yields, end })
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Auto), Just(Order::Sequential), Just(Order::Parallel), (1u32..5).prop_map(Order::Batched)]
}

/// The rules, said a second time: which calls belong to one unit.
fn model_units(plan: &[Planned], order: Order) -> Vec<Vec<usize>> {
    let places = |wanted: &dyn Fn(&Planned) -> bool| (0..plan.len()).filter(|i| wanted(&plan[*i])).collect::<Vec<_>>();
    match order {
        Order::Sequential => (0..plan.len()).map(|i| vec![i]).collect(),
        Order::Parallel => vec![(0..plan.len()).collect()],
        Order::Batched(n) => (0..plan.len()).collect::<Vec<_>>().chunks(n as usize).map(<[usize]>::to_vec).collect(),
        Order::Auto => {
            let mut units = vec![places(&|planned| planned.parallelizable)];
            units.extend(places(&|planned| !planned.parallelizable).into_iter().map(|i| vec![i]));
            units
        }
    }
}

fn run(
    plan: &[Planned],
    order: Order,
) -> (Vec<Result<toold_proto::tool::ToolResult, CallError>>, Vec<BatchStep>, Engine) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let engine = Arc::new(Engine::new("test"));
    let key = SourceKey { kind: SourceKind::Builtin, name: "test".into(), scope: SourceScope::Global };
    let tools = vec![recorder("beside", true, &log), recorder("alone", false, &log)];
    engine.registry.put(key, Origin::Builtin, tools).unwrap();
    let session = Arc::new(Session::new(new_session("s", "/")));
    let caller = person();
    let calls = plan.iter().enumerate().map(|(place, planned)| {
        let name = if planned.parallelizable { "beside" } else { "alone" };
        let arguments = json!({"place": place, "yields": planned.yields, "end": format!("{:?}", planned.end)});
        Call { caller: caller.clone(), ..prepare_call(&session, name, arguments) }
    });
    let calls = calls.collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let answers = runtime.block_on(async {
        let answers = execute_batch(&engine, calls, order).await;
        engine.tasks.close();
        engine.tasks.wait().await;
        answers
    });
    drop(runtime);
    let steps = log.lock().unwrap().clone();
    (answers, steps, Arc::into_inner(engine).expect("nothing holds the engine when all calls have ended"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn batches_keep_their_rules(plan in prop::collection::vec(planned(), 0..12), order in order()) {
        // Panics are part of the plan; their backtraces are not part of the output.
        std::panic::set_hook(Box::new(|_| {}));
        let (answers, steps, engine) = run(&plan, order);
        let _ = std::panic::take_hook();

        prop_assert_eq!(answers.len(), plan.len());
        let at = |step: BatchStep| steps.iter().position(|other| *other == step);
        let ran = |place: usize| at(BatchStep::Start(place)).is_some();

        // Each call's answer is that of its own end, or says that it was skipped.
        for (place, (planned, answer)) in plan.iter().zip(&answers).enumerate() {
            match (ran(place), planned.end, answer) {
                (false, _, Ok(result)) => prop_assert!(result.is_error && result.metadata["skipped"] == true),
                (true, CallEnd::Fine | CallEnd::Interrupt, Ok(result)) => prop_assert!(!result.is_error),
                (true, CallEnd::Error, Ok(result)) => prop_assert_eq!(result.text(), "bad news"),
                (true, CallEnd::Panic, Err(CallError::Failed(words))) => prop_assert!(words.contains("on purpose")),
                (true, CallEnd::Cancelled, Err(CallError::Cancelled)) => {}
                (ran, end, answer) => prop_assert!(false, "{place}: ran {ran}, {end:?}, {answer:?}"),
            }
        }

        // A unit begins when the one before has ended; after an interrupt no unit begins.
        let units = model_units(&plan, order);
        let mut interrupted = false;
        let mut last_end = None;
        for unit in &units {
            let starts: Vec<usize> = unit.iter().filter_map(|place| at(BatchStep::Start(*place))).collect();
            let ends: Vec<usize> = unit.iter().filter_map(|place| at(BatchStep::End(*place))).collect();
            prop_assert_eq!(starts.len(), ends.len());
            if interrupted {
                prop_assert!(starts.is_empty());
            }
            if let (Some(last), Some(first)) = (last_end, starts.iter().min()) {
                prop_assert!(last < *first);
            }
            last_end = ends.iter().max().copied().or(last_end);
            interrupted |= unit.iter().any(|place| ran(*place) && plan[*place].end == CallEnd::Interrupt);
        }

        // Without an interrupt everything runs.
        if !interrupted {
            prop_assert!((0..plan.len()).all(ran));
        }

        // Serial calls never overlap, in whatever order they were asked for.
        let mut open = None;
        for step in &steps {
            match step {
                BatchStep::Start(place) if !plan[*place].parallelizable => {
                    prop_assert_eq!(open.replace(*place), None);
                }
                BatchStep::End(place) if !plan[*place].parallelizable => {
                    prop_assert_eq!(open.take(), Some(*place));
                }
                BatchStep::Start(_) | BatchStep::End(_) => {}
            }
        }

        // The counts balance.
        let counts = engine.counts.read();
        prop_assert_eq!(counts.started, plan.len() as u64);
        prop_assert_eq!(counts.finished, plan.len() as u64);
    }
}
