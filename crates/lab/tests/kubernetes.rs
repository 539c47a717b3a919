//! What `cargo xtask kubernetes` built is what its index says, and runs.

use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Stdio};

#[test]
fn every_artifact_of_the_mirror_has_its_digest() {
    let Some(mirror) = lab::kubernetes::mirror() else {
        let name = "every_artifact_of_the_mirror_has_its_digest";
        return lab::skip(name, &lab::kubernetes::missing());
    };
    let index = std::fs::read(mirror.join("index.json")).unwrap();
    let index: Value = serde_json::from_slice(&index).unwrap();
    let lines = index["artifacts"].as_array().unwrap();
    let mut sums = String::new();
    for line in lines {
        let name = line["name"].as_str().unwrap();
        let size = std::fs::metadata(mirror.join(name)).unwrap().len();
        assert_eq!(line["size"], size, "{name}");
        sums += &format!("{}  {name}\n", line["sha256"].as_str().unwrap());
    }
    let mut child = Command::new("sha256sum")
        .args(["--check", "--strict", "--quiet"])
        .current_dir(&mirror)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(sums.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_mirror_has_all_that_a_cluster_needs_and_the_programs_tell_their_version() {
    let name = "a_mirror_has_all_that_a_cluster_needs_and_the_programs_tell_their_version";
    let mut found = false;
    for version in lab::kubernetes::VERSIONS {
        let Some(programs) = lab::kubernetes::programs(version) else {
            continue;
        };
        found = true;
        let told = |program, words: &[&str]| {
            let output = Command::new(program).args(words).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let kubeadm = told(&programs.kubeadm, &["version", "-o", "short"]);
        assert_eq!(kubeadm, *version);
        let kubelet = told(&programs.kubelet, &["--version"]);
        assert_eq!(kubelet, format!("Kubernetes {version}"));
        let kubectl = told(&programs.kubectl, &["version", "--client"]);
        assert!(kubectl.contains(version), "{kubectl}");

        let images = programs.kubeadm.with_file_name("images");
        let words = ["config", "images", "list", "--kubernetes-version", version];
        let wanted = told(&programs.kubeadm, &words);
        assert_eq!(wanted.lines().count(), 7, "{wanted}");
        for reference in wanted.lines() {
            let (path, _) = reference.rsplit_once(':').unwrap();
            let (_, image) = path.rsplit_once('/').unwrap();
            let archive = images.join(format!("{image}.tar"));
            let index = Command::new("tar")
                .arg("--extract")
                .arg("--to-stdout")
                .arg("--file")
                .args([archive.as_os_str(), "index.json".as_ref()])
                .output()
                .unwrap();
            let index = String::from_utf8(index.stdout).unwrap();
            let named = format!("\"io.containerd.image.name\":\"{reference}\"");
            assert!(index.contains(&named), "{}: {index}", archive.display());
        }
    }
    if !found {
        lab::skip(name, &lab::kubernetes::missing());
    }
}
