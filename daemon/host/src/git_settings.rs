//! Files with settings of Git, read as Git reads them (git-config(1), "CONFIGURATION FILE").

/// One setting. The names of its section and its own are in small letters.
pub(crate) struct Setting {
    pub(crate) section: String,
    pub(crate) subsection: Option<String>,
    pub(crate) name: String,
    /// `None` when it is not a plain text.
    pub(crate) value: Option<String>,
}

/// All settings of a file; `None` if it cannot be parsed. A value over several lines has further settings in it.
pub(crate) fn all(text: &str) -> Option<Vec<Setting>> {
    let mut section = (String::new(), None);
    let mut found = Vec::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let (header, behind) = rest.split_once(']')?;
            section = section_of(header)?;
            line = behind.trim();
        }
        if !line.is_empty() && !line.starts_with(['#', ';']) {
            found.push(setting_of(&section, line));
        }
    }
    Some(found)
}

/// `core`, `remote "origin"` or, in the older form, `remote.origin`.
pub(crate) fn section_of(header: &str) -> Option<(String, Option<String>)> {
    if header.matches('"').count() % 2 == 1 || header.contains('\\') {
        return None;
    }
    let end = header.find(['"', ' ', '.', '\t']).unwrap_or(header.len());
    let (name, rest) = header.split_at_checked(end)?;
    let rest = rest.trim();
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let subsection = match (rest.is_empty(), quoted, rest.strip_prefix('.')) {
        (true, _, _) => None,
        (false, Some(quoted), _) => Some(quoted.to_owned()),
        (false, None, Some(dotted)) => Some(dotted.to_ascii_lowercase()),
        (false, None, None) => return None,
    };
    Some((name.to_ascii_lowercase(), subsection))
}

/// `name = value`, or `name` alone, which is true.
pub(crate) fn setting_of((section, subsection): &(String, Option<String>), line: &str) -> Setting {
    let (name, rest) = line.split_at_checked(line.find(['=', ' ', '\t']).unwrap_or(line.len())).unwrap_or((line, ""));
    let rest = rest.trim();
    let value = match rest.strip_prefix('=').map(str::trim) {
        None => rest.is_empty().then(|| "true".to_owned()),
        Some(value) => {
            let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            let text = quoted.unwrap_or(value);
            let is_plain = !text.contains(['"', '\\']) && (quoted.is_some() || !text.contains(['#', ';']));
            is_plain.then(|| text.to_owned())
        }
    };
    Setting { section: section.clone(), subsection: subsection.clone(), name: name.to_ascii_lowercase(), value }
}
