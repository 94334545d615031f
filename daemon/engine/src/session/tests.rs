use super::*;

fn new(id: &str) -> NewSession {
    NewSession {
        id: SessionId::parse(id).unwrap(),
        cwd: "/p".into(),
        roots: vec!["/root".into()],
        project: "/p".into(),
        client: None,
        model: None,
        env: BTreeMap::new(),
        filter: SessionFilter::default(),
        workspace: None,
    }
}

fn below(session: &Arc<Session>, id: &str, chain: &[&str]) -> Arc<Session> {
    let chain = chain.iter().map(|name| (*name).to_owned()).collect();
    let new = NewSession { cwd: "/p/deep".into(), roots: Vec::new(), ..new(id) };
    Arc::new(Session::owned_by(new, SessionOwner::Tool(Starter { session: session.clone(), chain })))
}

#[test]
fn held_session_follows_the_topmost_mode_until_an_ancestor_is_closed() {
    let sessions = Sessions::default();
    let (top, _) = sessions.open(Session::new(new("top")));
    let middle = below(&top, "middle", &["a"]);
    let last = below(&middle, "last", &["a", "b"]);
    for mode in [Mode::Yolo, Mode::Plan, Mode::AcceptEdits] {
        top.set_mode(mode);
        last.set_mode(Mode::Yolo);
        assert_eq!(last.mode(), mode);
    }
    assert_eq!(last.above(), [&middle.id, &top.id]);
    assert_eq!(last.places(), [Path::new("/p"), Path::new("/root")]);
    assert_eq!(*last.chain(), ["a", "b"]);
    sessions.close(&top.id);
    assert_eq!(last.mode(), Mode::Plan);
}

#[test]
fn sessions_that_nobody_uses_are_closed_and_no_others() {
    let sessions = Sessions::default();
    for id in ["left", "held", "of-use"] {
        drop(sessions.open(Session::new(new(id))));
    }
    let held = sessions.find(&SessionId::parse("held").unwrap()).unwrap();
    let of_use = |session: &Session| session.id.as_str() == "of-use";
    assert!(sessions.close_unused(Duration::from_secs(3600), of_use).is_empty());
    let closed = sessions.close_unused(Duration::ZERO, of_use);
    assert_eq!(closed.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(), ["left"]);
    assert!(closed[0].closed.is_cancelled() && !held.closed.is_cancelled());
    assert_eq!(sessions.len(), 2);
}

#[test]
fn of_too_many_sessions_that_nobody_uses_the_oldest_are_closed() {
    let sessions = Sessions::default();
    for number in 0..10 {
        drop(sessions.open(Session::new(new(&number.to_string()))));
    }
    let held = sessions.find(&SessionId::parse("0").unwrap()).unwrap();
    sessions.find(&SessionId::parse("1").unwrap()).unwrap().note_use();
    assert!(sessions.close_surplus(10, |_| true, |_| false).is_empty());
    let closed = sessions.close_surplus(3, |_| true, |session| session.id.as_str() == "2");
    let closed: Vec<&str> = closed.iter().map(|session| session.id.as_str()).collect();
    assert_eq!(closed, ["3", "4", "5", "6", "7"]);
    assert!(!held.closed.is_cancelled());
    assert_eq!(sessions.len(), 5);
}

#[test]
fn session_of_an_unknown_tool_may_only_read() {
    let lost = Session::owned_by(new("lost"), SessionOwner::UnknownTool);
    lost.set_mode(Mode::Yolo);
    assert_eq!(lost.mode(), Mode::Plan);
}
