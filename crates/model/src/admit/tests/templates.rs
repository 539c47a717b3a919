//! Documents of kind `TemplateGitReference`, and who names them.

use super::HELLO;
use crate::admit::admit_all;
use crate::manifest::Manifest;
use crate::source;
use crate::templates::Templates;
use expect_test::{Expect, expect};

const LAB: &str = "{name: lab, providerType: simulated}";

const OURS: &str = "
apiVersion: claudie.io/v1beta1
kind: TemplateGitReference
metadata: {name: ours, namespace: claudie}
spec:
  endpoint: {url: github.com/org/modules, protocol: https}
  commit: main
  paths:
    terraformer: templates/terraformer
    playbooks: templates/playbooks
    configLb: templates/config-lb
    configK8s: templates/config-k8s
    manifestsK8s: templates/manifests-k8s
  auth: {secretRef: {name: git, namespace: default}}
";

fn named(reference: &str) -> String {
    let provider = format!("{{name: lab, providerType: simulated, templatesRef: {reference}}}");
    HELLO.replacen(LAB, &provider, 1)
}

/// What admission says of a file with these documents.
#[track_caller]
fn check(documents: &[&str], expected: &Expect) {
    let told = match admit_all(&source::parse_all(&documents.join("\n---\n")).unwrap()) {
        Ok(manifest) => format!("{}\n", told(&manifest)),
        Err(faults) => faults
            .iter()
            .map(|fault| format!("{}: {fault}\n", fault.code.as_str()))
            .collect(),
    };
    expected.assert_eq(&told);
}

fn told(manifest: &Manifest) -> String {
    let account = &manifest.providers[&"lab".parse().unwrap()];
    let templates = account.templates.as_ref();
    let secret = templates.and_then(Templates::secret);
    let templates = templates.map_or("built-in".to_owned(), ToString::to_string);
    let secret = secret.map_or(String::new(), |secret| format!(", opened by {secret}"));
    format!("{templates}{secret}")
}

#[test]
fn what_a_document_describes_is_what_a_provider_names() {
    let led = expect![[r"
        github.com/org/modules//templates/terraformer@main, opened by git/token
    "]];
    check(&[OURS, &named("{name: ours}")], &led);
    check(&[&named("{name: ours, namespace: claudie}"), OURS], &led);
    let also = OURS.replace("claudie.io/v1beta1", "slipway.dev/v1");
    check(&["", &also, "# nothing", &named("{name: ours}")], &led);
}

#[test]
fn the_usual_name_without_a_document_means_the_built_in_modules() {
    let usual = named("{name: claudie-default-templates, namespace: claudie}");
    check(
        &[&usual],
        &expect![[r"
        built-in
    "]],
    );
    let own = OURS
        .replace("name: ours", "name: claudie-default-templates")
        .replace("commit: main", "commit: v0.9.1");
    check(
        &[&usual, &own],
        &expect![[r"
        github.com/org/modules//templates/terraformer@v0.9.1, opened by git/token
    "]],
    );
}

#[test]
fn a_name_that_leads_nowhere_is_refused_with_those_that_lead_somewhere() {
    check(
        &[OURS, &named("{name: theirs}")],
        &expect![[r#"
            unused: documents[0]: TemplateGitReference ours is used by no provider; name it in templatesRef, or remove it
            reference: spec.providers[0].templatesRef.name: found `theirs`, allowed: a TemplateGitReference of the same file (ours), or claudie-default-templates
        "#]],
    );
    check(
        &[&named("{name: ours}")],
        &expect![[r"
        reference: spec.providers[0].templatesRef.name: found `ours`, allowed: a TemplateGitReference of the same file (none is defined), or claudie-default-templates
    "]],
    );
    check(
        &[&named("{name: ours, namespace: other}"), OURS],
        &expect![[r"
        reference: spec.providers[0].templatesRef.name: found `ours`, allowed: a TemplateGitReference of the same file (ours), or claudie-default-templates
        unused: documents[1]: TemplateGitReference ours is used by no provider; name it in templatesRef, or remove it
    "]],
    );
}

#[test]
fn all_that_is_wrong_is_told_with_its_document() {
    let wrong = "
apiVersion: v1
kind: TemplateGitReference
metadata: {name: ours}
spec:
  endpoint: {url: 'https://github.com/org/modules', protocol: ssh}
  paths: {terraformer: ../x, playbooks: 3, more: x}
  auth: {secretRef: {name: git, key: token}}
";
    check(
        &[&named("{name: ours}"), wrong],
        &expect![[r#"
            format: documents[1].apiVersion: found `v1`, allowed: slipway.dev/v1 or claudie.io/v1beta1
            required: documents[1].spec.commit: found nothing; this field is required
            format: documents[1].spec.endpoint.url: found `https://github.com/org/modules`, allowed: a repository without a scheme, for example github.com/org/modules; it is fetched by https
            format: documents[1].spec.endpoint.protocol: found `ssh`, allowed: https
            format: documents[1].spec.paths.terraformer: found `../x`, allowed: a path within the repository
            type: documents[1].spec.paths.playbooks: found `3` (a number), allowed: a text
            unknown-field: documents[1].spec.paths.more: unknown field; allowed: terraformer, playbooks, configLb, configK8s, manifestsK8s
            unknown-field: documents[1].spec.auth.secretRef.key: unknown field; allowed: name, namespace
        "#]],
    );
    check(
        &[OURS, OURS, &named("{name: ours}"), HELLO],
        &expect![[r"
        duplicate: documents[1]: found another description of ours, allowed: one
        duplicate: documents[3]: found another document, allowed: one InputManifest, and those of kind TemplateGitReference that it names
    "]],
    );
    check(
        &[OURS],
        &expect![[r#"
            required: the document: found no document of kind InputManifest, allowed: one
            unused: documents[0]: TemplateGitReference ours is used by no provider; name it in templatesRef, or remove it
        "#]],
    );
}
