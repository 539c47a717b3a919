//! What is told of fields of manifests; nobody is asked.

use super::{check, picture};
use expect_test::expect;

/// Where no server is.
const NOBODY: &str = "http://127.0.0.1:1";

#[tokio::test]
async fn a_field_is_told_with_those_within_it() {
    check(
        NOBODY,
        "explain spec.kubernetes.clusters.upgradeGates",
        &expect![[r#"
            exit 0
            spec.kubernetes.clusters[].upgradeGates  a list of mappings
              What a node has to pass before it serves again after its upgrade, or in place of another, and before the next one goes.

            * name                    What people call it; unique in the cluster.
              command                 A program and its arguments, run on the node's machine as root. 0 lets the node pass.
              job                     A Job that must be complete. Either this or a command.
              timeout                 For how long it is asked again; 10m where nothing is said.

            * must be said
            --
        "#]],
    )
    .await;
    check(NOBODY, "explain spot -o json", &expect![[r#"
        exit 0
        [
          {
            "path": "spec.nodePools.dynamic[].spot",
            "required": false,
            "allowed": "true or false",
            "about": "Whether machines are lent cheaply and may be taken back at any time. Never for a control plane; false where nothing is said. Cannot change while they serve, unless the pool says replace: true."
          }
        ]
        --
    "#]]).await;
}

#[tokio::test]
async fn who_says_little_sees_all_that_may_be_meant() {
    check(
        NOBODY,
        "explain count",
        &expect![[r#"
            exit 0
            spec.nodePools.dynamic[].count
              How many machines. Either this or autoscaler. At a cloud at most 251 less the surge.
            spec.nodePools.metal[].count
              How many machines.
            spec.kubernetes.clusters[].etcdBackup.keep.count
              How many snapshots are kept; 7 where nothing is said.

            Say more of its place to see what is allowed there.
            --
        "#]],
    )
    .await;
    check(
        NOBODY,
        "explain cuont",
        &expect![[r#"
        exit 2
        --
        error: manifests have no field `cuont` (CLI-008)
        hint: did you mean `spec.nodePools.dynamic[].count` or `spec.nodePools.metal[].count` or `spec.kubernetes.clusters[].etcdBackup.keep.count`?
    "#]],
    )
    .await;
    check(
        NOBODY,
        "explain",
        &expect![[r#"
            exit 0
            * apiVersion              Which language this is; both words mean the same.
            * kind                    What kind of document this is.
            * metadata                What the manifest is called.
            * metadata.name           What people call the manifest; unique within its project.
              metadata.namespace      The project, for files that name one. Another is refused.
              metadata.labels         For other tools; none of them is kept.
              metadata.annotations    For other tools; none of them is kept.
            * spec                    All that is declared.
              spec.providers          Who lends machines. Needed where a dynamic pool names one.
              spec.disruption         What is taken out of service together, in all clusters.
            * spec.nodePools          Machines alike, scaled and replaced together.
            * spec.kubernetes         The clusters.
              spec.loadBalancers      What stands before clusters.
            * TemplateGitReference.apiVersion
                                      Which language this is; both words mean the same.
            * TemplateGitReference.kind
                                      What kind of document this is.
            * TemplateGitReference.metadata
                                      What templatesRef of a provider calls it.
            * TemplateGitReference.spec
                                      Which modules.

            * must be said
            --
        "#]],
    )
    .await;
}

#[tokio::test]
async fn editors_get_a_schema() {
    let told = picture(NOBODY, "explain --schema", None).await;
    assert!(
        told.contains("https://json-schema.org/draft/2020-12/schema"),
        "{told}"
    );
}
