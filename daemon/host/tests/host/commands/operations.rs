//! Effects of operations in all their forms, and what rules and levels make of them.

use toold_proto::permission::Verdict;

use crate::commands::rules::check;

use Verdict::{Allow, Deny};

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
