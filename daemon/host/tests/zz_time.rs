#[test]
fn timing() {
    let cases: Vec<(&str, String)> = vec![
        ("parens", "(".repeat(50_000)),
        ("subst", "$(".repeat(50_000)),
        ("dollar", "${x".repeat(50_000)),
        ("braces", "{ ".repeat(50_000)),
        ("semi", "a;".repeat(100_000)),
        ("and", "a && ".repeat(40_000)),
        ("quotes", "'\"".repeat(100_000)),
        ("backticks", "`".repeat(100_000)),
        ("heredoc", "cat <<E\n".repeat(20_000)),
        ("bigheredoc", format!("cat <<'E' > f\n{}E\n", "some text line $x `y` $(z)\n".repeat(9_000))),
        ("bigheredoc2", format!("cat <<E > f\n{}E\n", "some text line x y z\n".repeat(9_000))),
        ("words", format!("echo {}", "word ".repeat(50_000))),
        ("arith", "$((".repeat(50_000)),
        ("test", "[[ ( ".repeat(50_000)),
        ("case", "case x in a) ".repeat(10_000)),
        ("if", "if a; then ".repeat(10_000)),
        ("redirect", "<a >b ".repeat(30_000)),
        ("amp", "&".repeat(200_000)),
        ("bash", "bash -c 'bash -c ".repeat(1000)),
        ("sudo", format!("{}ls", "sudo ".repeat(40_000))),
        ("list5k", "a && ".repeat(50) + "b"),
    ];
    for (name, line) in cases {
        let t = std::time::Instant::now();
        let n = toold_host::shell_grammar::needs(&line, std::path::Path::new("/nowhere"));
        println!("{name} {} bytes {:?} needs {} unsure {}", line.len(), t.elapsed(), n.len(), n.iter().filter(|n| n.words.is_none()).count());
    }
}
