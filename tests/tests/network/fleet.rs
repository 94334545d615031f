//! Daemons as processes that form a fleet through a real NATS server.

mod asks;
mod audit;
mod calls;
mod grants;
mod listing;
mod status;
mod trust;

use toold_tests::{FleetPlan, NatsServer, Setup};

#[test]
fn daemons_join_a_fleet() {
    let Some(nats) = NatsServer::start() else { return };
    let plan = FleetPlan::new(&["laptop", "build"], &["anna"]);
    let laptop = Setup::new().config(&plan.config("laptop", &nats.url(), Some("anna"), "")).start();
    let build = Setup::new().config(&plan.config("build", &nats.url(), None, "labels = [\"gpu\"]")).start();
    drop((laptop, build));
}
