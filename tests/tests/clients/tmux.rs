//! toolctl in a real terminal multiplexer: a person types into shells and reads the screen.

use toold_tests::{Setup, TestDaemon, Tmux};

#[test]
fn project_grant_from_one_pane_applies_in_the_other() {
    const CALL: &str = "toolctl call bash command='echo it is done'";
    let daemon = TestDaemon::asking();
    let tmux = Tmux::start(&daemon);
    let (first, second) = (tmux.first(), tmux.split());
    for pane in [&first, &second] {
        pane.run(CALL);
        pane.wait_for("deny, with a reason");
    }
    first.press_until("p", "the answer", |screen| screen.contains("allowed in this project"));
    // The answer is for both, which wait for the same prompt. Extra keys may precede the output.
    first.wait("it is done", |screen| {
        screen.lines().any(|line| line.trim_end().trim_start_matches('p') == "it is done")
    });
    second.wait_for_line("it is done");
    // From now on nobody is asked.
    second.run(CALL);
    second.wait_for_line("it is done");
    let screen = second.wait_for_prompt();
    assert!(!screen.contains("asks for"), "{screen}");
    // Another command still prompts.
    second.run("toolctl call bash command='echo another'");
    second.wait_for("deny, with a reason");
    second.press_until("n", "the answer", |screen| screen.contains("denied"));
}

#[test]
fn a_shell_is_attached_to_typed_into_and_left_running() {
    let allow = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";
    let daemon = Setup::new().config(allow).start();
    let tmux = Tmux::start(&daemon);
    let (first, second) = (tmux.first(), tmux.split());
    let program = "echo begun; while read line; do echo got $line; done";
    first.run(&format!("toolctl call bash command='{program}' tty=true background=true"));
    first.wait_for("sh_1 runs in the background");
    first.run("toolctl shells attach sh_1");
    first.wait_for("Ctrl-] detaches");
    first.wait_for_line("begun");
    first.type_line("by hand");
    first.wait_for_line("got by hand");
    // Output that comes while it is attached is shown too.
    second.run("toolctl shells write sh_1 from elsewhere");
    first.wait_for_line("got from elsewhere");
    first.press("C-]");
    first.wait_for_line("detached from sh_1; it keeps running");

    let status = |wanted: &str| {
        first.run("toolctl shells");
        let screen = first.wait_for_prompt();
        let row = screen.lines().find(|line| line.trim_start().starts_with("sh_1 ")).expect(&screen);
        assert_eq!(row.split_whitespace().nth(1), Some(wanted), "{screen}");
    };
    status("running");
    second.run("toolctl shells kill sh_1");
    second.wait_for_line("sh_1: killed");
    status("killed");
}
