//! Those who are to be told what becomes of environments are told by the real program: the script
//! of the project, a webhook by what is signed, and a channel whose address is a secret.

use super::House;
use super::bad_input::script;
use super::wire::{self, Sent, Service};
use crate::secrets::{done, drawn, said, until};
use lab::traces::{found, traces};
use serde_json::{Value, json};

/// A project that tells its script, a webhook and a channel.
struct Told {
    house: House,
    ops: Service,
    chat: Service,
    /// What the webhook is signed with.
    key: String,
    /// What opens the way to the channel.
    path: String,
    /// All that was said to whoever asked.
    heard: String,
}

impl Told {
    fn new() -> Self {
        let mut house = House::new("file");
        let (ops, chat) = (Service::start(), Service::start());
        let (key, path) = (drawn(40), format!("T00/B00/{}", drawn(40)));
        let noted = house.directory.path().join("noted");
        script(
            &house,
            "notifications",
            &format!("echo \"$*\" >>'{}'", noted.display()),
        );
        let files = tempfile::tempdir().unwrap();
        let address = format!("{}/{path}\n", chat.address);
        let entries = [("ops", &key), ("slack", &address)].map(|(entry, value)| {
            let file = files.path().join(entry);
            std::fs::write(&file, value).unwrap();
            format!("{entry}=@{}", file.display())
        });
        let set = ["secret", "set", "hooks", &entries[0], &entries[1]];
        let heard = done(&house.server.client(&set));
        let mut told = Self {
            house,
            ops,
            chat,
            key,
            path,
            heard,
        };
        let hook = format!("{}/hook", told.ops.address);
        // However busy the machine is, none of them becomes a failure.
        told.env(&["settings", "set", "--pending-time", "2m"]);
        told.env(&[
            "settings",
            "notify",
            "ops",
            "--webhook",
            &hook,
            "--secret",
            "hooks/ops",
        ]);
        told.env(&["settings", "notify", "chat", "--slack", "hooks/slack"]);
        told
    }

    /// Runs `slipway env …`, which must end well, and keeps in mind what it said.
    #[track_caller]
    fn env(&mut self, words: &[&str]) -> String {
        let said = self.house.env(words);
        self.heard += &said;
        said
    }

    /// The same of which the answer is for programs.
    #[track_caller]
    fn asked(&mut self, words: &[&str]) -> Value {
        let words = [words, &["-o", "json"]].concat();
        let all = [&["env"], words.as_slice()].concat();
        let output = self.house.server.client(&all);
        self.heard += &done(&output);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Messages that have come so far.
    #[track_caller]
    fn deliveries(&mut self, state: &str) -> Vec<Value> {
        let listed = self.asked(&["deliveries", "list", "--state", state]);
        listed["items"].as_array().unwrap().clone()
    }

    /// From which status to which, as the script was told.
    fn noted(&self) -> Vec<(String, String)> {
        let noted = self.house.directory.path().join("noted");
        let noted = std::fs::read_to_string(noted).unwrap_or_default();
        let pair = |line: &str| {
            let begin = "--project-name Shop --base-domain shop.example.org --namespace shop --name orange --old-status ";
            let rest = line.strip_prefix(begin).unwrap();
            let (was, became) = rest.split_once(" --new-status ").unwrap();
            (was.to_owned(), became.to_owned())
        };
        noted.lines().map(pair).collect()
    }

    /// Waits until both were sent so many messages.
    #[track_caller]
    fn are_sent(&self, count: usize) {
        until(&format!("both are sent {count} messages"), || {
            let sent = [self.ops.sent(), self.chat.sent()];
            sent.iter().all(|sent| sent.len() == count).then_some(())
        });
    }

    /// What opens either way was said to nobody, and is in no log.
    #[track_caller]
    fn check_hidden(&mut self) {
        self.env(&["settings", "show"]);
        self.env(&["settings", "show", "-o", "json"]);
        for words in [
            &["get", "events", "-o", "json"][..],
            &["audit", "list", "-o", "json"],
        ] {
            self.heard += &done(&self.house.server.client(words));
        }
        self.heard += &std::fs::read_to_string(&self.house.server.log).unwrap();
        for secret in [&self.key, &self.path] {
            let told = traces(secret.as_bytes());
            assert!(
                found(self.heard.as_bytes(), &told).is_empty(),
                "{}",
                self.heard
            );
        }
    }
}

/// Whoever knows the secret can tell that it was sent by somebody else who does, and just now.
#[track_caller]
fn check_signed(sent: &Sent, key: &str) {
    let header = |name: &str| {
        let begin = format!("{name}: ");
        let mut found = sent
            .headers
            .iter()
            .filter_map(|one| one.strip_prefix(&begin));
        found.next().unwrap().to_owned()
    };
    let timestamp = header("slipway-timestamp");
    let signed = wire::signed(key, &format!("{timestamp}.{}", sent.text));
    assert_eq!(header("slipway-signature"), format!("v1={signed}"));
    assert_eq!(header("slipway-delivery"), sent.body["id"]);
    let sent_at =
        std::time::UNIX_EPOCH + std::time::Duration::from_secs(timestamp.parse().unwrap());
    assert!(sent_at.elapsed().unwrap().as_secs() < 300, "{timestamp}");
}

#[test]
fn the_script_the_webhook_and_the_channel_are_told_what_becomes_of_an_environment() {
    let mut told = Told::new();
    told.env(&["create", "orange", "-t", "v1", "--owner", "ana", "--wait"]);
    told.env(&["update", "orange", "-t", "v2", "--wait"]);
    told.env(&["archive", "orange", "--wait"]);
    told.are_sent(3);
    let pairs = [
        ("CreatePending", "Running"),
        ("Running", "UpdatePending"),
        ("UpdatePending", "Running"),
        ("Running", "ArchivePending"),
        ("ArchivePending", "Archived"),
    ];
    let pairs = pairs.map(|(was, became)| (was.to_owned(), became.to_owned()));
    until("the script is told of the last", || {
        (told.noted().len() >= pairs.len()).then_some(())
    });
    assert_eq!(told.noted(), pairs);

    let expected = [
        ("running", "create-pending", "v1"),
        ("running", "update-pending", "v2"),
        ("archived", "archive-pending", "v2"),
    ];
    for (sent, (kind, before, tag)) in told.ops.sent().iter().zip(expected) {
        check_signed(sent, &told.key);
        let environment = &sent.body["environment"];
        assert_eq!(
            (
                sent.path.as_str(),
                &sent.body["kind"],
                &sent.body["project"]
            ),
            ("/hook", &json!(kind), &json!("default")),
        );
        for (name, value) in [
            ("name", "orange"),
            ("status", kind),
            ("before", before),
            ("tag", tag),
            ("owner", "ana"),
        ] {
            assert_eq!(environment[name], value, "{name}: {}", sent.text);
        }
        assert_eq!(
            environment["links"][0],
            json!({"name": "app", "url": "https://orange.shop.example.org"})
        );
    }
    for (sent, (kind, _, tag)) in told.chat.sent().iter().zip(expected) {
        assert_eq!(sent.path, format!("/{}", told.path));
        let text = sent.body["text"].as_str().unwrap();
        assert_eq!(sent.body, json!({"text": text}));
        let begin = format!("*orange* of default is {kind}");
        assert!(text.starts_with(&begin) && text.contains(tag), "{text}");
        let link = text.ends_with(" https://orange.shop.example.org");
        assert_eq!(link, kind == "running", "{text}");
    }
    until("all are known to have arrived", || {
        (told.deliveries("delivered").len() == 2 * 3 + pairs.len()).then_some(())
    });
    told.check_hidden();
}

/// What waits for a target after it was refused at least once; none where nothing does.
#[track_caller]
fn waiting(told: &mut Told, target: &str) -> Option<Value> {
    let waiting = told.deliveries("waiting").into_iter();
    let mut tried = waiting.filter(|one| one["tries"].as_u64().unwrap() > 0);
    tried.find(|one| one["target"] == target)
}

#[test]
fn what_does_not_arrive_is_listed_and_sent_again_by_itself_or_when_somebody_says_so() {
    let mut told = Told::new();
    // One wants to be left alone for an hour, the other says nothing of that.
    told.ops
        .refuse(Some("503 Service Unavailable\r\nretry-after: 3600"));
    told.chat.refuse(Some("500 Internal Server Error"));
    told.env(&["create", "orange", "-t", "v1", "--wait"]);
    let to_ops = until("the webhook refuses it", || waiting(&mut told, "ops"));
    let to_chat = until("the channel refuses it", || waiting(&mut told, "chat"));
    for (delivery, said) in [
        (&to_ops, "503 Service Unavailable: no room at /hook"),
        (&to_chat, "500 Internal Server Error: no room at /***"),
    ] {
        assert_eq!(
            (&delivery["event"], &delivery["said"]),
            (&json!("running"), &json!(said))
        );
    }
    let shown = told.env(&["deliveries", "list", "--state", "waiting"]);
    assert!(shown.contains("webhook ops"), "{shown}");
    let shown = told.env(&["info", "orange"]);
    assert!(shown.contains("messages that have not arrived"), "{shown}");

    told.chat.refuse(None);
    until("the channel is told by itself", || {
        (told.chat.sent().len() == 1).then_some(())
    });
    told.ops.refuse(None);
    assert_eq!(told.ops.sent().len(), 0, "it wants to be left alone");
    let id = to_ops["id"].as_str().unwrap();
    let again = told.asked(&["deliveries", "retry", id]);
    assert_eq!(again["id"], id);
    told.are_sent(1);
    let sent = told.ops.sent().pop().unwrap();
    check_signed(&sent, &told.key);
    assert_eq!(sent.body["id"], id, "it is the same message");
    until("nothing waits", || {
        told.deliveries("waiting").is_empty().then_some(())
    });

    let test = told.asked(&["settings", "test-notify", "ops"]);
    assert_eq!(
        (&test["state"], &test["event"]),
        (&json!("delivered"), &json!("test"))
    );
    let sent = told.ops.sent().pop().unwrap();
    check_signed(&sent, &told.key);
    assert_eq!(
        (&sent.body["kind"], sent.body.get("environment")),
        (&json!("test"), None)
    );
    told.env(&["settings", "test-notify", "chat"]);
    let sent = told.chat.sent().pop().unwrap();
    let text = "This is a test of Slipway for project default.";
    assert_eq!(sent.body, json!({"text": text}));
    told.chat.refuse(Some("500 Internal Server Error"));
    let words = ["env", "settings", "test-notify", "chat"];
    let output = told.house.server.client(&words);
    told.heard += &said(&output);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("given-up"), "{}", said(&output));
    told.check_hidden();
}
