//! A path that is replaced by a link while the person decides: no member of a plugin's API follows it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire};

/// Everything in a plugin's API that goes to a file, by the path below the folder `place` that it is called with.
const MEMBERS: &[(&str, &str, &str)] = &[
    ("fs.read", "file", "return hygge.fs.read(path)"),
    ("fs.write to a file", "file", "hygge.fs.write(path, 'changed')"),
    ("fs.write to a new file", "new", "hygge.fs.write(path, 'changed')"),
    ("fs.append to a file", "file", "hygge.fs.append(path, 'changed')"),
    ("fs.append to a new file", "new", "hygge.fs.append(path, 'changed')"),
    ("fs.list", "folder", "return hygge.fs.list(path)[1].name"),
    ("fs.stat of a file", "file", "return hygge.fs.stat(path).size"),
    ("fs.stat of a folder", "folder", "return hygge.fs.stat(path).type"),
    ("fs.exists", "file", "return hygge.fs.exists(path)"),
    ("fs.exists of what is outside only", "outside", "return hygge.fs.exists(path)"),
    ("fs.mkdir", "new", "hygge.fs.mkdir(path)"),
    ("fs.mkdir of several", "new/deep", "hygge.fs.mkdir(path)"),
    ("fs.remove of a file", "file", "hygge.fs.remove(path)"),
    ("fs.remove of a folder", "empty", "hygge.fs.remove(path)"),
    ("os.remove", "file", "return os.remove(path)"),
    ("os.rename from", "file", "return os.rename(path, path .. '.old')"),
    ("os.rename to", "new", "return os.rename(base .. '/beside', path)"),
    ("os.rename over", "file", "return os.rename(base .. '/beside', path)"),
    ("io.open r", "file", "local file, message = io.open(path) return file and file:read('*a') or message"),
    ("io.open w", "file", "local file, message = io.open(path, 'w') return file and file:write('changed') or message"),
    ("io.open a", "file", "local file, message = io.open(path, 'a') return select(2, file:write('changed'))"),
    ("io.open r+", "file", "local file, message = io.open(path, 'r+') return message"),
    ("io.open w+", "file", "local file, message = io.open(path, 'w+') return message"),
    ("io.open a+", "new", "local file = io.open(path, 'a+') return select(2, file:write('changed'))"),
    ("io.lines", "file", "return io.lines(path)()"),
    ("fs.glob", "file", "return table.concat(hygge.fs.glob('**'), ' ')"),
];

/// The plugin that calls a member of its API by its place in [`MEMBERS`].
fn plugin() -> String {
    let members: Vec<String> = MEMBERS.iter().map(|(_, _, body)| format!("function(base, path) {body} end")).collect();
    format!(
        "local members = {{{}}}
         hygge.register_tool{{
           name = 't', description = 'Calls a member', permission = false,
           input_schema = {{type = 'object', properties = {{
             member = {{type = 'integer'}}, base = {{type = 'string'}}, path = {{type = 'string'}},
           }}}},
           execute = function(ctx, input)
             local ok, value, message = pcall(members[input.member], input.base, input.path)
             return tostring(ok) .. ' ' .. tostring(value) .. ' ' .. tostring(message)
           end,
         }}",
        members.join(",\n")
    )
}

/// Every file and folder below `root`, with what is in the files.
fn tree(root: &Path) -> BTreeMap<PathBuf, Option<String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(tree(&path));
            found.insert(path, None);
        } else {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path, Some(text));
        }
    }
    found
}

/// Creates `place`, which the prompt is about, and `secret`, where nothing may be read or changed.
fn layout(base: &Path) {
    for name in ["place", "secret"] {
        for folder in ["folder", "empty"] {
            fs::create_dir_all(base.join(name).join(folder)).unwrap();
        }
    }
    fs::write(base.join("place/file"), "plain").unwrap();
    fs::write(base.join("place/folder/plain"), "plain").unwrap();
    fs::write(base.join("beside"), "beside").unwrap();
    for name in ["file", "folder/secret", "outside", "file.old.secret"] {
        fs::write(base.join("secret").join(name), "secret").unwrap();
    }
}

/// Puts a link to `secret` where the folder `place` was.
fn swap_folder(base: &Path, _: &str) {
    fs::rename(base.join("place"), base.join("was")).unwrap();
    symlink("secret", base.join("place")).unwrap();
}

/// Puts a link below `place` where the path itself was, or was to be.
fn swap_entry(base: &Path, below: &str) {
    let below = below.split('/').next().unwrap();
    let path = base.join("place").join(below);
    if path.exists() {
        fs::rename(&path, base.join("was")).unwrap();
    }
    symlink(Path::new("../secret").join(below), path).unwrap();
}

/// Runs the tool, swaps at the first prompt, and allows all prompts except those that name `secret` itself, as a person
/// would. Returns the tool's text.
fn call(wire: &mut Wire, params: &Value, secret: &Path, swap: impl FnOnce()) -> String {
    let id = wire.request("tools.execute", json!({"name": "t", "arguments": params}));
    let mut swap = Some(swap);
    loop {
        let message = wire.next_message().expect("the daemon answers");
        if message["method"] == "permissions.event" && message["params"]["result"]["type"] == "asked" {
            if let Some(swap) = swap.take() {
                swap();
            }
            let ask = &message["params"]["result"]["request"];
            let is_secret = Path::new(ask["target"].as_str().unwrap()).starts_with(secret);
            let action = if is_secret { "deny" } else { "allow" };
            wire.request("permissions.reply", json!({"request_id": ask["request_id"], "action": action}));
        } else if message["id"] == id && message.get("method").is_none() {
            assert!(swap.is_none(), "nobody was asked: {message}");
            return message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned();
        }
    }
}

fn start() -> TestDaemon {
    let config = "[[permission.rules]]\ncategory = \"file.read\"\npattern = \"**\"\naction = \"ask\"\n";
    Setup::new().config(config).plugin("members.lua", &plugin()).start()
}

#[track_caller]
fn check(swap: fn(&Path, &str), members: impl Fn(&str) -> bool) {
    let daemon = start();
    let mut wrong = Vec::new();
    for (number, (member, below, _)) in MEMBERS.iter().enumerate().filter(|(_, (member, ..))| members(member)) {
        let base = daemon.setup.path(&format!("outside/{number}"));
        layout(&base);
        let secret = tree(&base.join("secret"));
        let mut wire = Wire::connect(&daemon.socket());
        wire.result("session.open", json!({"cwd": base.join("place"), "client": {"name": "test"}}));
        wire.result("permissions.subscribe", json!({}));
        let params = json!({"member": number + 1, "base": base, "path": base.join("place").join(below)});
        let text = call(&mut wire, &params, &base.join("secret"), || swap(&base, below));
        // For a member that accesses the path twice, the second prompt names the target of the link.
        let is_denied = text.contains("not allowed") && text.contains("/secret");
        if tree(&base.join("secret")) != secret {
            wrong.push(format!("{member} changed a file outside: {text}"));
        } else if !text.contains("changed into a link") && !is_denied {
            wrong.push(format!("{member} was not refused: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_member_follows_a_folder_that_became_a_link() {
    check(swap_folder, |_| true);
}

#[test]
fn no_member_follows_a_path_that_became_a_link() {
    // A link within the working folder is listed by `glob` and not followed.
    check(swap_entry, |member| member != "fs.glob");
}

#[test]
fn every_member_works_where_nothing_is_swapped() {
    let daemon = start();
    for (number, (member, below, _)) in MEMBERS.iter().enumerate() {
        let base = daemon.setup.path(&format!("outside/{number}"));
        layout(&base);
        let secret = tree(&base.join("secret"));
        let mut wire = Wire::connect(&daemon.socket());
        wire.result("session.open", json!({"cwd": base.join("place"), "client": {"name": "test"}}));
        wire.result("permissions.subscribe", json!({}));
        let params = json!({"member": number + 1, "base": base, "path": base.join("place").join(below)});
        let text = call(&mut wire, &params, &base.join("secret"), || {});
        assert!(text.starts_with("true ") && !text.contains("can't"), "{member}: {text}");
        assert_eq!(tree(&base.join("secret")), secret, "{member}: {text}");
    }
}
