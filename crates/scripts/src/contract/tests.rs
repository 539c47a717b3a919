//! Exact argument vectors, as pictures.

use super::*;
use crate::testing::{setting, subject};
use model::environment::settings::Contract;

fn told(words: &[String]) -> String {
    words.join(" ")
}

#[test]
fn an_environment_is_told_with_both_configurations() {
    let mut subject = subject();
    subject.application = vec![
        setting("image.tag", "v7"),
        setting("motd", "hello, \"world\" = all\nof it"),
    ];
    subject.deployment = vec![setting("extra", "1")];
    let words = lifecycle(&subject, &Opened::none());
    assert_eq!(
        words,
        [
            "--project-name",
            "Cactus store",
            "--base-domain",
            "cactus-store.com",
            "--namespace",
            "cactus",
            "--name",
            "orange-button",
            "--application-config",
            "image.tag=v7",
            "--application-config",
            "motd=hello, \"world\" = all\nof it",
            "--deployment-config",
            "extra=1",
        ]
    );
    subject.settings.contract = Contract::Legacy;
    let words = lifecycle(&subject, &Opened::none());
    assert_eq!(
        words[6..11].join(" "),
        "--name orange-button --tag v7 --application-config"
    );
    assert_eq!(words.len(), 16);
}

#[test]
fn the_application_is_asked_about_before_the_project_is_named() {
    let subject = subject();
    let deployment = [setting("chart_version", "12.1.0"), setting("extra", "")];
    assert_eq!(
        told(&application(&subject.settings, &deployment)),
        "--deployment-config chart_version=12.1.0 --deployment-config extra= \
         --project-name Cactus store --base-domain cactus-store.com --namespace cactus"
    );
}

#[test]
fn a_notification_has_both_statuses_in_the_words_of_scripts() {
    let subject = subject();
    let words = notification(&subject, Status::UpdatePending, Status::Running);
    assert_eq!(
        told(&words),
        "--project-name Cactus store --base-domain cactus-store.com --namespace cactus \
         --name orange-button --old-status UpdatePending --new-status Running"
    );
}

#[test]
fn a_legacy_tag_that_is_not_there_is_left_out() {
    let mut subject = subject();
    subject.settings.contract = Contract::Legacy;
    let words = lifecycle(&subject, &Opened::none());
    assert!(!words.contains(&"--tag".to_owned()));
}

#[test]
fn no_two_scripts_share_a_name() {
    let names: Vec<_> = Script::ALL
        .iter()
        .flat_map(|script| script.names())
        .collect();
    let unique: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!((names.len(), unique.len()), (21, 21));
}
