//! Effects of operations in all their forms, and what rules and levels make of them.

use std::fmt::Debug;

use toold_proto::effect::Effect;
use toold_proto::permission::Verdict;

use crate::commands::folders::TestProject;
use crate::commands::rules::{check, effects_of};

use Verdict::{Allow, Ask, Deny};

/// The lines that are judged otherwise than expected.
#[derive(Default)]
struct WrongLines(Vec<String>);

impl WrongLines {
    fn expect<T: PartialEq + Debug>(&mut self, line: &str, found: T, expected: T) {
        if found != expected {
            self.0.push(format!("{line}: {found:?}, expected {expected:?}"));
        }
    }

    #[track_caller]
    fn none(self) {
        assert!(self.0.is_empty(), "{} lines: {:#?}", self.0.len(), self.0);
    }
}

/// A path is one however it is written, and a branch is none.
#[test]
fn git_checkout_of_a_path_throws_changes_away() {
    let project = TestProject::make();
    let mut wrong = WrongLines::default();
    let destroys = |line: &str| effects_of(line, &project.place).contains(&Effect::Destroy);
    for path in [
        "README.md",
        "src",
        "src/lib.rs",
        "web/package.json",
        "*.md",
        "'*.md'",
        "':(top)src'",
        "':!src'",
        "\"src/$f\"",
        "\"src/l$f\"",
        "./src",
    ] {
        for form in [
            "git checkout P",
            "git checkout -q P",
            "git checkout --theirs P",
            "git -C . checkout P",
            "git checkout HEAD P",
        ] {
            let line = form.replace('P', path);
            wrong.expect(&line, destroys(&line), true);
        }
    }
    for line in
        ["git checkout -p", "git checkout --patch", "git submodule deinit -f x", "cd \"$d\" && git checkout lib.rs"]
    {
        wrong.expect(line, destroys(line), true);
    }
    for line in [
        "git checkout main",
        "git checkout -",
        "git checkout HEAD~1",
        "git checkout -b src",
        "git checkout -b x main",
        "git checkout -t origin/x",
        "git checkout --detach v1.0",
        "git checkout \"feature/$x\"",
        "cd \"$d\" && git checkout main",
        "git switch main",
        "git submodule deinit x",
    ] {
        wrong.expect(line, destroys(line), false);
    }
    wrong.none();
    check(&[
        (&["allow shell **", "deny shell git restore *"], &["git checkout README.md", "git checkout -q src"], Deny),
        (&["allow shell git checkout README.md *"], &["git checkout README.md"], Allow),
        (&["allow shell git checkout *"], &["git checkout README.md", "git checkout src"], Ask),
        (&["allow shell git checkout *"], &["git checkout main", "git checkout -b src"], Allow),
    ]);
}

/// A word behind the operation of `aws`, `gcloud` and `az` is no verb.
#[test]
fn a_denied_operation_of_a_cloud_is_no_word_behind_another() {
    check(&[
        (
            &[
                "allow shell **",
                "deny shell aws s3 rm *",
                "deny shell aws ec2 terminate-instances *",
                "deny shell aws s3 cp * s3://prod/*",
                "deny shell aws s3 sync --delete *",
                "deny shell az vm delete *",
                "deny shell az storage account keys list *",
                "deny shell gcloud compute instances delete *",
            ],
            &[
                "aws s3 ls rm",
                "aws s3 ls s3://b --query rm",
                "aws s3 cp README.md rm",
                "aws s3 cp README.md s3://test/x",
                "aws s3 sync src s3://b",
                "aws ec2 describe-instances --filters terminate-instances",
                "aws ec2 describe-instances --instance-ids \"$id\"",
                "az vm list --query delete",
                "az vm show -n delete",
                "gcloud compute instances list --filter delete",
                "gcloud compute instances describe delete",
            ],
            Allow,
        ),
        (
            &[
                "allow shell **",
                "deny shell aws s3 rm *",
                "deny shell aws s3 rb s3://prod *",
                "deny shell aws * terminate-instances *",
                "deny shell aws s3 cp * s3://prod/*",
                "deny shell aws s3 sync --delete *",
                "deny shell aws --profile prod *",
                "deny shell az delete *",
                "deny shell az storage blob copy start *",
                "deny shell gcloud compute instances delete *",
                "deny shell gcloud projects delete prod",
            ],
            &[
                "aws s3 rm s3://b/x",
                "aws --profile p s3 rm --recursive s3://b",
                "aws --region eu s3 rm s3://b",
                "aws s3 rb --region eu s3://prod",
                "aws s3 rb s3://prod --force",
                "aws ec2 terminate-instances --instance-ids i-1",
                "aws --output json ec2 terminate-instances",
                "aws s3 cp --region eu README.md s3://prod/x",
                "aws s3 sync src s3://b --delete",
                "aws s3 sync --del src s3://b",
                "aws s3 ls --profile prod",
                "aws s3 ls --profile=prod",
                "az vm delete -n x",
                "az storage blob copy start --source-uri x",
                "gcloud --quiet compute instances delete x",
                "gcloud compute instances delete --zone a x",
                "gcloud projects delete prod",
                "sudo aws s3 rm s3://b",
            ],
            Deny,
        ),
    ]);
}
