//! `[notify]`: how you learn outside of your clients that something waits for your answer.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use toold_engine::Settings;
use toold_host::http::target;
use toold_host::secret_text::SecretText;

use crate::config::listen::is_this_machine;
use crate::config::mcp_servers::expand;
use crate::config::program;

/// `[notify]`: tells you when a request for permission or a question waits. Only in the user's configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// How long it waits before you are notified, such as `30s` or `2m`. An answer before that prevents the notification.
    #[cfg_attr(test, schemars(extend("default" = humantime::format_duration(Self::default().after.0).to_string())))]
    pub after: WaitTime,
    /// A program and its arguments, in which `{title}`, `{text}` and `{link}` are replaced; no shell.
    pub command: Vec<String>,
    /// Show a notification on the desktop.
    pub desktop: bool,
    /// The URL that a notification is posted to in the form of ntfy, such as `https://ntfy.sh/TOPIC`.
    pub post: Option<String>,
    /// The access token for `post`: `${secret:NAME}`, rather than the token itself.
    pub token: Option<String>,
    /// The address at which your browser reaches the daemon's page, such as `https://desk.example:8443`: notifications
    /// link to the request there.
    pub link: Option<String>,
    /// Whether notifications say what a request is about, such as the command or the path. When absent, `command` and
    /// `desktop` do, and `post` does not, because its text leaves this machine.
    pub details: Option<bool>,
    /// Whether `post` has a button that allows a request, besides the one that denies it. It allows once, and nothing that
    /// publishes, destroys, changes the system, gains rights or handles secrets. It needs `details = true`, and a `token`
    /// without which the server shows the topic to nobody.
    pub allow: bool,
    /// Also ask while no connected client can show the request to you. It then waits for ten minutes, where it is
    /// otherwise refused at once or left to the agent's own prompt.
    pub wait: bool,
}

/// A length of time, written as `30s` or `1m 30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(test, schemars(with = "String"))]
pub struct WaitTime(pub Duration);

impl TryFrom<String> for WaitTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = humantime::parse_duration(&text).ok().filter(|time| *time <= Duration::from_secs(24 * 3600));
        read.map(Self).ok_or_else(|| format!("{text:?} is not a time of at most a day, such as 30s or 2m"))
    }
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            after: WaitTime(Duration::from_secs(30)),
            command: Vec::new(),
            desktop: false,
            post: None,
            token: None,
            link: None,
            details: None,
            allow: false,
            wait: false,
        }
    }
}

impl NotifyConfig {
    /// Whether there is a way to notify.
    pub fn is_on(&self) -> bool {
        !self.command.is_empty() || self.desktop || self.post.is_some()
    }

    /// The errors, each with its key.
    pub fn problems(&self, home: Option<&Path>, var: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |key: &str, problem: Option<String>| {
            problems.extend(problem.map(|problem| format!("notify{key}: {problem}")));
        };
        let no_way = "nothing is sent: set command, desktop or post";
        check("", (*self != Self::default() && !self.is_on()).then(|| no_way.to_owned()));
        check(".command", self.command.first().and_then(|name| program(name.clone(), home).err()));
        check(".command", text_in_a_script(&self.command));
        for (key, url) in [(".post", &self.post), (".link", &self.link)] {
            check(key, url.as_deref().and_then(|url| target::parse(url).err()).map(|error| error.to_string()));
        }
        let is_longer = |link: &String| target::parse(link).is_ok_and(|url| url.query().or(url.fragment()).is_some());
        let address_only = "expected the address alone, without ? and #, such as https://desk.example:8443";
        check(".link", self.link.as_ref().filter(|link| is_longer(link)).map(|_| address_only.to_owned()));
        let end = Settings::default().ask_timeout;
        let minutes = end.as_secs() / 60;
        let too_late = format!("a request ends after {minutes} minutes, so nothing would be sent: choose less");
        check(".after", (self.after.0 >= end).then_some(too_late));
        check(".token", self.secret_token(var).err());
        let no_post = "it is for post, which is not set";
        check(".token", (self.token.is_some() && self.post.is_none()).then(|| no_post.to_owned()));
        check(".allow", self.allow.then(|| self.allow_problem()).flatten());
        problems
    }

    /// Why a button that allows would be one for others, too, or for what cannot be seen.
    fn allow_problem(&self) -> Option<String> {
        let url = self.post.as_deref().and_then(|post| target::parse(post).ok());
        let is_private = url.is_some_and(|url| url.scheme() == "https" || url.host_str().is_some_and(is_this_machine));
        let problem = match () {
            () if self.post.is_none() || self.token.is_none() => {
                "expected post and token: whoever can read the topic could allow"
            }
            () if !is_private => "expected https:// in post: whoever reads the network could allow",
            () if self.details != Some(true) => "expected details = true: you would allow what you do not see",
            () => return None,
        };
        Some(problem.to_owned())
    }

    /// The token, with places for its secrets.
    pub(crate) fn secret_token(&self, var: &dyn Fn(&str) -> Option<String>) -> Result<Option<SecretText>, String> {
        self.token.as_deref().map(|token| expand::variables(token, var)).transpose()
    }
}

/// Why a command is refused whose script would run the text of a request, which agents choose.
fn text_in_a_script(command: &[String]) -> Option<String> {
    let name = Path::new(command.first()?).file_name()?.to_str()?;
    let runs_scripts = ["sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "perl", "ruby", "node", "env"];
    let has_place = |argument: &&String| ["{title}", "{text}", "{link}"].iter().any(|place| argument.contains(place));
    let is_script = |argument: &str| argument.starts_with('-') && argument.contains(['c', 'e']);
    let follows = command.windows(2).find(|pair| is_script(&pair[0]) && has_place(&&pair[1]))?;
    runs_scripts.contains(&name).then(|| {
        format!(
            "{name} would run the text of a request, which an agent chose, as part of a script: in {:?}, use \"$1\" \
             instead, and give {{text}} as a further argument",
            follows[1]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let config: NotifyConfig = toml::from_str(text).unwrap();
        assert_eq!(config.problems(None, &|_| None), expected);
    }

    #[test]
    fn errors_name_their_key() {
        check("", &[]);
        check("desktop = true\nafter = \"1m 30s\"", &[]);
        check("post = \"https://ntfy.sh/x\"\ntoken = \"${secret:NTFY}\"\nlink = \"http://desk:1\"", &[]);
        check("after = \"1s\"", &["notify: nothing is sent: set command, desktop or post"]);
        for command in [
            r#"["sh", "-c", "notify-send '{text}'"]"#,
            r#"["/bin/bash", "-ec", "echo {title}"]"#,
            r#"["env", "A=b", "sh", "-c", "say {text}"]"#,
            r#"["python3", "-c", "print('{text}')"]"#,
        ] {
            let config: NotifyConfig = toml::from_str(&format!("command = {command}")).unwrap();
            let problems = config.problems(None, &|_| None);
            assert!(problems.len() == 1 && problems[0].contains("as part of a script"), "{command}: {problems:?}");
        }
        check(r#"command = ["sh", "-c", "notify-send \"$1\"", "sh", "{text}"]"#, &[]);
        check(
            "desktop = true\nafter = \"10m\"\nlink = \"https://desk.example/?a=1\"",
            &[
                "notify.link: expected the address alone, without ? and #, such as https://desk.example:8443",
                "notify.after: a request ends after 10 minutes, so nothing would be sent: choose less",
            ],
        );
        check("command = [\"./tell\"]", &["notify.command: \"./tell\" is neither a name nor an absolute path"]);
        for (post, problem) in [
            ("desktop = true", Some("expected post and token: whoever can read the topic could allow")),
            ("post = \"https://h/x\"", Some("expected post and token: whoever can read the topic could allow")),
            (
                "post = \"http://h/x\"\ntoken = \"t\"\ndetails = true",
                Some("expected https:// in post: whoever reads the network could allow"),
            ),
            (
                "post = \"https://h/x\"\ntoken = \"t\"",
                Some("expected details = true: you would allow what you do not see"),
            ),
            ("post = \"https://h/x\"\ntoken = \"t\"\ndetails = true", None),
            ("post = \"http://127.0.0.1:1/x\"\ntoken = \"t\"\ndetails = true", None),
        ] {
            let problem = problem.map(|problem| format!("notify.allow: {problem}"));
            check(&format!("{post}\nallow = true"), &problem.iter().map(String::as_str).collect::<Vec<_>>());
        }
        check(
            "desktop = true\ntoken = \"${secret:a b}\"",
            &["notify.token: \"a b\" is not the name of a secret", "notify.token: it is for post, which is not set"],
        );
        for wrong in ["ftp://h/x", "https://u:p@h/x", "ntfy.sh/x"] {
            let config = NotifyConfig { post: Some(wrong.to_owned()), ..NotifyConfig::default() };
            let problems = config.problems(None, &|_| None);
            assert!(problems.len() == 1 && problems[0].starts_with("notify.post: "), "{problems:?}");
        }
        for wrong in ["30", "soon", "2days"] {
            assert!(toml::from_str::<NotifyConfig>(&format!("after = {wrong:?}")).is_err(), "{wrong}");
        }
    }
}
