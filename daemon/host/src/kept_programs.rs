//! Programs that may outlive the command that started them: build servers and agents, which serve later commands too.
//! They stay tools' processes: they carry the [mark](crate::tool_mark), grant nothing, and end with the daemon.

/// The names of such programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptPrograms(Vec<String>);

impl KeptPrograms {
    /// Patterns, in which `*` stands for any text. Each is compared with the name of a process's program, with the name
    /// under which it was started, and with its whole command line.
    pub fn new(patterns: Vec<String>) -> Self {
        Self(patterns)
    }

    /// Whether a process is one of them. `program` is the path of its program, if it can be read. A process chooses its
    /// own arguments, so this grants nothing but a longer life.
    pub(crate) fn contain(&self, program: Option<&str>, arguments: &[String]) -> bool {
        let first = arguments.first().map(String::as_str).unwrap_or_default();
        let called = file_name(first);
        let rest = arguments.get(1..).unwrap_or_default();
        let line =
            |name: &str| std::iter::once(name).chain(rest.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        let mut names = vec![called.to_owned(), line(called), line(first)];
        names.extend(program.map(|program| file_name(program).to_owned()));
        self.0.iter().any(|pattern| names.iter().any(|name| fits(pattern, name)))
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether the text fits a pattern in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, line: &[&str], expected: bool) {
        let arguments: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let kept = KeptPrograms::new(vec![pattern.to_owned()]);
        assert_eq!(kept.contain(Some("/usr/bin/java"), &arguments), expected, "{pattern} {line:?}");
    }

    #[test]
    fn program_name_and_command_line_are_compared() {
        check("sccache", &["/usr/bin/sccache"], true);
        check("sccache", &["sccache", "--start-server"], true);
        check("sccache", &["sccache2"], false);
        check("java", &["anything"], true);
        check("*org.gradle.launcher.daemon.*", &["java", "-cp", "x", "org.gradle.launcher.daemon.Main", "8"], true);
        check("bazel(*", &["bazel(project)", "--server"], true);
        check("ssh: *[mux]", &["ssh: /home/you/.ssh/master [mux]"], true);
        check("git gc*", &["/usr/lib/git-core/git", "gc", "--auto"], true);
        check("a*b*c", &["abc"], true);
        check("a*b*c", &["ac"], false);
        check("ab*b", &["ab"], false);
    }
}
