//! Files that commands write under another name than they say, and files with secrets.

use std::fs;

use toold_proto::permission::Verdict;

use crate::commands::folders::{TestProject, write};
use crate::commands::judge::{RuleLine, judge};

use Verdict::{Allow, Ask, Deny};

#[track_caller]
fn check(project: &TestProject, rules: &[&str], rows: &[(&str, Verdict)]) {
    let rules: Vec<RuleLine> = rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
    for (line, expected) in rows {
        let judged = judge(line, &project.place, &rules);
        let why: Vec<_> = judged.parts.iter().map(|part| (&part.target, part.verdict, &part.rule)).collect();
        assert_eq!(judged.verdict, *expected, "{line}: {why:?}");
    }
}

#[test]
fn a_file_that_is_put_into_a_folder_is_written_there_under_its_name() {
    let project = TestProject::make();
    let files = [
        ("a/conf.json", "1"),
        ("b/conf.json", "1"),
        ("b/other.json", "1"),
        ("d/mise.toml", ""),
        ("d/.vscode/tasks.json", ""),
        ("d/plain.txt", ""),
    ];
    write(&project.place.workspace, &files);
    std::os::unix::fs::symlink("../b/conf.json", project.place.workspace.join("d/linked.json")).unwrap();
    fs::write(project.place.workspace.join("a/linked.json"), "").unwrap();
    let rules = [
        "allow shell cp *",
        "allow shell mv *",
        "allow shell ln *",
        "allow shell install *",
        "allow shell rsync *",
        "deny file.write {project}/b/conf.json",
    ];
    check(
        &project,
        &rules,
        &[
            ("cp a/conf.json b/conf.json", Deny),
            ("cp a/conf.json b/", Deny),
            ("cp a/conf.json b", Deny),
            ("cp -t b a/conf.json", Deny),
            ("cp --target-directory=b a/conf.json", Deny),
            ("cp README.md a/conf.json b", Deny),
            ("cp a/*.json b", Deny),
            ("cp -r a/. b", Deny),
            ("rsync a/ b", Deny),
            ("mv a/conf.json b", Deny),
            ("install a/conf.json b", Deny),
            ("ln a/conf.json b", Deny),
            ("cd a && cp conf.json ../b", Deny),
            // Through a link.
            ("cp a/linked.json d/", Deny),
            ("cp README.md b/", Allow),
            ("cp -r a b", Allow),
            ("cp a/conf.json d/", Allow),
            ("mv b/other.json a", Allow),
            ("cp d/mise.toml mise.toml", Ask),
            ("cp d/mise.toml .", Ask),
            ("mv d/mise.toml .", Ask),
            ("cp d/* .", Ask),
            ("cp -r d/. .", Ask),
            ("cp -r d/.vscode .", Ask),
            ("cp d/plain.txt .", Allow),
        ],
    );
}

#[test]
fn files_with_secrets_are_known_by_their_names_and_certificates_by_their_content() {
    let project = TestProject::make();
    let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let key = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n";
    let files = [
        (".dev.vars", "KEY=1\n"),
        ("deploy/prod.env", "KEY=1\n"),
        ("deploy/terraform.tfvars", "key = 1\n"),
        (".env.example", "KEY=\n"),
        (".env.test", "KEY=\n"),
        ("tls/ca.pem", certificate),
        ("keys/server.pem", key),
        ("tests/fixtures/server.key", key),
        ("node_modules/tls/test.pem", key),
    ];
    write(&project.place.workspace, &files);
    check(
        &project,
        &[],
        &[
            ("grep API_KEY .dev.vars", Deny),
            ("cat deploy/prod.env", Deny),
            ("cat deploy/terraform.tfvars", Deny),
            ("grep -rn KEY deploy", Deny),
            ("grep -rn KEY --exclude='*.env' --exclude='*.tfvars' deploy", Allow),
            ("cat .env.example .env.test", Allow),
            ("cat tls/ca.pem", Allow),
            ("grep -rn BEGIN tls", Allow),
            ("cat keys/server.pem", Deny),
            ("grep -rn BEGIN keys", Deny),
            ("cat tests/fixtures/server.key", Allow),
            ("grep -rn BEGIN node_modules", Allow),
        ],
    );
    // Variables of Terraform are no secrets for Terraform itself.
    check(
        &project,
        &["allow shell terraform *"],
        &[
            ("terraform plan -var-file=deploy/terraform.tfvars", Allow),
            ("terraform -chdir=deploy show terraform.tfvars", Ask),
            ("cat deploy/terraform.tfvars", Deny),
        ],
    );
    let exactly = ["allow file.read {project}/.dev.vars"];
    check(&project, &exactly, &[("cat .dev.vars", Allow), ("cat deploy/prod.env", Deny), ("echo x > .dev.vars", Deny)]);
    let judged = judge("grep -rn KEY deploy", &project.place, &[]);
    let names_it = judged.parts.iter().any(|part| part.rule.contains("leave it out with --exclude="));
    assert!(names_it, "{:?}", judged.parts);
}
