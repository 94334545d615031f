//! Single words in other spellings: branches, paths, hosts, packages, modes and kinds of resources.

use std::path::Path;

use toold_proto::cut;

/// Names of one kind of resource each (`kubectl api-resources` of Kubernetes 1.31).
const KUBERNETES_KINDS: &[&[&str]] = &[
    &["secrets", "secret"],
    &["namespaces", "namespace", "ns"],
    &["nodes", "node", "no"],
    &["pods", "pod", "po"],
    &["services", "service", "svc"],
    &["deployments", "deployment", "deploy"],
    &["daemonsets", "daemonset", "ds"],
    &["statefulsets", "statefulset", "sts"],
    &["replicasets", "replicaset", "rs"],
    &["configmaps", "configmap", "cm"],
    &["persistentvolumes", "persistentvolume", "pv"],
    &["persistentvolumeclaims", "persistentvolumeclaim", "pvc"],
    &["serviceaccounts", "serviceaccount", "sa"],
    &["ingresses", "ingress", "ing"],
    &["jobs", "job"],
    &["cronjobs", "cronjob", "cj"],
    &["events", "event", "ev"],
    &["roles", "role"],
    &["rolebindings", "rolebinding"],
    &["clusterroles", "clusterrole"],
    &["clusterrolebindings", "clusterrolebinding"],
    &["customresourcedefinitions", "customresourcedefinition", "crd", "crds"],
    &["storageclasses", "storageclass", "sc"],
    &["networkpolicies", "networkpolicy", "netpol"],
    &["horizontalpodautoscalers", "horizontalpodautoscaler", "hpa"],
    &["poddisruptionbudgets", "poddisruptionbudget", "pdb"],
    &["replicationcontrollers", "replicationcontroller", "rc"],
    &["endpoints", "endpoint", "ep"],
    &["limitranges", "limitrange", "limits"],
    &["resourcequotas", "resourcequota", "quota"],
    &["priorityclasses", "priorityclass", "pc"],
    &["ingressclasses", "ingressclass"],
    &["certificatesigningrequests", "certificatesigningrequest", "csr"],
    &["componentstatuses", "componentstatus", "cs"],
    &["apiservices", "apiservice"],
    &["leases", "lease"],
];

/// What `all` stands for (`kubectl api-resources --categories=all`).
const OF_ALL: &[&str] = &[
    "pods",
    "services",
    "deployments",
    "daemonsets",
    "statefulsets",
    "replicasets",
    "replicationcontrollers",
    "jobs",
    "cronjobs",
    "horizontalpodautoscalers",
];

/// More kinds of resources in one word are not looked at.
const MAX_KINDS: usize = 20;

/// The branch that a refspec pushes to: `main` of `HEAD:main` and `refs/heads/main` (git-push(1), "<refspec>").
pub(super) fn branch(refspec: &str) -> Vec<Vec<String>> {
    let plain = refspec.strip_prefix('+').unwrap_or(refspec);
    let to = plain.rsplit_once(':').map_or(plain, |(_, to)| to);
    let to = ["refs/heads/", "heads/"].iter().find_map(|start| to.strip_prefix(start)).unwrap_or(to);
    if to == refspec || to.is_empty() || to.contains('/') && refspec.contains("//") {
        return Vec::new();
    }
    vec![vec![to.to_owned()]]
}

/// `src` and `./src` of `./src/`, `a/../src` and `/folder/src`, and `.` of `./`.
pub(super) fn paths(text: &str, folder: Option<&Path>) -> Vec<String> {
    if text.contains("://") || !text.contains('/') {
        return Vec::new();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match parts.last() {
            Some(before) if part == ".." && *before != ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let plain = parts.join("/");
    let found = match text.strip_prefix('/') {
        Some(_) => {
            let whole = format!("/{plain}");
            let below = folder.and_then(|folder| Path::new(&whole).strip_prefix(folder).ok()).and_then(Path::to_str);
            let below = below.map(|below| if below.is_empty() { "." } else { below }.to_owned());
            [below.as_ref().map(|below| format!("./{below}")), below, Some(whole)].into_iter().flatten().collect()
        }
        None if plain.is_empty() => vec![".".to_owned()],
        None => vec![format!("./{plain}"), plain],
    };
    // `./-rf` is no option.
    found.into_iter().filter(|path| path != text && !path.starts_with('-')).collect()
}

/// `host` of `user@host` and `ssh://user@host:22`, `host:path` of `user@host:path`.
pub(super) fn host(text: &str) -> Vec<Vec<String>> {
    let address = text.strip_prefix("ssh://").map(|rest| rest.split(['/', ':']).next().unwrap_or_default());
    let plain = address.unwrap_or(text);
    let host = plain.split_once('@').filter(|(user, host)| !user.contains(['/', ':']) && !host.is_empty());
    let host = host.map_or(plain, |(_, host)| host);
    if host == text || host.is_empty() { Vec::new() } else { vec![vec![host.to_owned()]] }
}

/// `prisma` of `prisma@5`.
pub(super) fn unversioned_package(package: &str) -> Vec<Vec<String>> {
    let version = package.rfind('@').filter(|at| *at > 0);
    version.map(|at| vec![cut::before(package, at).to_owned()]).into_iter().collect()
}

/// `777` of `0777`, `1777`, `a+rwx` and `u=rwx,go=rwx`, and `600` of `u=rw,go=`.
pub(super) fn mode(written: &str) -> Vec<Vec<String>> {
    // `=777` and `+777`
    let text = match written.trim_start_matches(['=', '+']) {
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits,
        _ => written,
    };
    let is_octal = (3..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let digits = if is_octal { Some(cut::from(text, text.len() - 3).to_owned()) } else { symbolic_mode(text) };
    digits.filter(|digits| digits != written).map(|digits| vec![vec![digits]]).unwrap_or_default()
}

/// Each way to write for whom a clause is.
const WHOSE: &[&str] =
    &["g", "o", "ug", "gu", "uo", "ou", "go", "og", "ugo", "uog", "guo", "gou", "oug", "ogu", "a", ""];

/// `o+w` and the like of a mode by which others than the owner may write: `777`, `g+w,o+w`, `a=rw`.
pub(super) fn opened_to_others(written: &str) -> Vec<Vec<String>> {
    let opened = writable_by(written);
    let names = |who: &str| match who {
        "" | "a" => "ugo".chars().all(|letter| opened.contains(&letter)),
        _ => who.chars().all(|letter| opened.contains(&letter)),
    };
    if opened.iter().all(|letter| *letter == 'u') {
        return Vec::new();
    }
    let clauses = WHOSE.iter().filter(|who| names(who)).map(|who| format!("{who}+w"));
    clauses.filter(|clause| clause != written).map(|clause| vec![clause]).collect()
}

/// The letters of those to whom a mode gives the right to write (chmod(1), "MODE").
fn writable_by(mode: &str) -> Vec<char> {
    let digits = mode.trim_start_matches(['=', '+']);
    if !digits.is_empty() && digits.bytes().all(|b| (b'0'..=b'7').contains(&b)) {
        let last: Vec<char> = digits.chars().rev().take(3).collect();
        let writes = |at: usize| last.get(at).and_then(|digit| digit.to_digit(8)).is_some_and(|digit| digit & 2 != 0);
        return "ogu".chars().enumerate().filter(|(at, _)| writes(*at)).map(|(_, letter)| letter).collect();
    }
    let clauses = mode.split(',').filter_map(|clause| clause.split_once(['+', '=']));
    // `g=u` copies the owner's rights.
    let gives = |what: &str| what.split('-').next().is_some_and(|given| given.contains(['w', 'u', 'g', 'o']));
    let giving = clauses.filter(|(_, what)| gives(what));
    let whose = giving.flat_map(|(who, _)| if matches!(who, "" | "a") { "ugo".chars() } else { who.chars() });
    whose.flat_map(|letter| if letter == 'a' { vec!['u', 'g', 'o'] } else { vec![letter] }).collect()
}

/// The digits of a mode whose clauses set all bits, or add the rest of them.
fn symbolic_mode(text: &str) -> Option<String> {
    let mut bits: [Option<u32>; 3] = [None; 3];
    for clause in text.split(',') {
        let (who, what) = clause.split_once(['+', '=']).filter(|(_, what)| !what.contains(['+', '-', '=']))?;
        let whose: Vec<usize> = match who {
            "" | "a" => vec![0, 1, 2],
            _ => who.chars().map(|letter| "ugo".find(letter)).collect::<Option<_>>()?,
        };
        let mut given = 0;
        for letter in what.chars() {
            given |= match letter {
                'r' => 4,
                'w' => 2,
                'x' | 'X' => 1,
                's' | 't' => 0,
                copied => bits["ugo".find(copied)?]?,
            };
        }
        let adds = clause.contains('+');
        for at in whose {
            bits[at] = match (adds, bits[at]) {
                (false, _) => Some(given),
                (true, Some(before)) => Some(before | given),
                // What was there before is not known.
                (true, None) => Some(given).filter(|given| *given == 7),
            };
        }
    }
    bits.iter().map(|bits| bits.map(|bits| bits.to_string())).collect()
}

/// Each kind of `pods,secret/x`, by all its names. Case does not count, nor the version of `secrets.v1.`.
pub(super) fn kinds(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for resource in text.split(',').take(MAX_KINDS) {
        let (kind, name) = resource.split_once('/').map_or((resource, None), |(kind, name)| (kind, Some(name)));
        let kind = kind.split('.').next().unwrap_or_default().to_ascii_lowercase();
        if kind == "all" {
            let rows = KUBERNETES_KINDS.iter().filter(|row| OF_ALL.contains(&row[0]));
            found.extend(rows.flat_map(|row| row.iter()).map(|known| vec![(*known).to_owned()]));
        }
        let Some(row) = KUBERNETES_KINDS.iter().find(|row| row.contains(&kind.as_str())) else { continue };
        for known in row.iter().filter(|known| **known != text) {
            found.push(std::iter::once(*known).chain(name).map(str::to_owned).collect());
        }
        // `kubectl drain node/x` is `kubectl drain x`.
        found.extend(name.map(|name| vec![name.to_owned()]));
    }
    found
}
