//! The files of a mirror, and nothing else, for whoever asks.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use tower::ServiceExt as _;

/// Asks the router of a directory; the status, a header of the answer, and its body.
async fn ask(
    directory: &std::path::Path,
    method: &str,
    path: &str,
    range: Option<&str>,
) -> (StatusCode, String, String) {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(range) = range {
        request = request.header("range", range);
    }
    let router = server::mirror::router(directory.to_owned());
    let answer = router
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    let header = |name: &str| {
        let value = answer.headers().get(name);
        value
            .map_or("-", |value| value.to_str().unwrap())
            .to_owned()
    };
    let told = format!("{} {}", header("content-length"), header("content-range"));
    let status = answer.status();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20)
        .await
        .unwrap();
    (status, told, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn files_are_given_whole_and_in_parts() {
    let home = tempfile::tempdir().unwrap();
    let here = home.path();
    std::fs::create_dir(here.join("deb")).unwrap();
    std::fs::write(here.join("deb/a_1%3a2+b~c.deb"), "0123456789").unwrap();
    std::fs::write(here.join("empty"), "").unwrap();
    let path = "/deb/a_1%253a2+b~c.deb";
    for (range, status, told, body) in [
        (None, 200, "10 -", "0123456789"),
        (Some("bytes=4-"), 206, "6 bytes 4-9/10", "456789"),
        (Some("bytes=4-5"), 206, "2 bytes 4-5/10", "45"),
        (Some("bytes=8-99"), 206, "2 bytes 8-9/10", "89"),
        (Some("bytes=-3"), 206, "3 bytes 7-9/10", "789"),
        (Some("bytes=0-"), 200, "10 -", "0123456789"),
        (Some("bytes=10-"), 416, "0 bytes */10", ""),
        (Some("bytes=-0"), 416, "0 bytes */10", ""),
        (Some("bytes=5-4"), 200, "10 -", "0123456789"),
        (Some("bytes=1-2,4-5"), 200, "10 -", "0123456789"),
        (Some("lines=1-2"), 200, "10 -", "0123456789"),
    ] {
        let answer = ask(here, "GET", path, range).await;
        let expected = (
            StatusCode::from_u16(status).unwrap(),
            told.to_owned(),
            body.to_owned(),
        );
        assert_eq!(answer, expected, "{range:?}");
    }
    let (status, told, body) = ask(here, "HEAD", path, None).await;
    assert_eq!(
        (status.as_u16(), told.as_str(), body.as_str()),
        (200, "10 -", "")
    );
    let (status, told, _) = ask(here, "GET", "/empty", None).await;
    assert_eq!((status.as_u16(), told.as_str()), (200, "0 -"));
}

#[tokio::test]
async fn nothing_else_is_given() {
    let home = tempfile::tempdir().unwrap();
    let here = home.path().join("mirror");
    std::fs::create_dir_all(here.join("deb/.packages")).unwrap();
    std::fs::write(here.join("deb/.packages/x"), "hidden").unwrap();
    std::fs::write(here.join("deb/.hidden"), "hidden").unwrap();
    std::fs::write(here.join("tool"), "tool").unwrap();
    std::fs::write(home.path().join("secret"), "secret").unwrap();
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, here.join(at)).unwrap();
    link("../secret", "out");
    link("tool", "in");
    link("/", "root");
    for path in [
        "/",
        "/deb",
        "/deb/",
        "/nothing",
        "/tool/x",
        "/deb/.hidden",
        "/deb/.packages/x",
        "/../secret",
        "/deb/../../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "/%2fetc/passwd",
        "//etc/passwd",
        "/out",
        "/root/etc/passwd",
        "/tool%00",
        "/tool%",
        "/%ff",
    ] {
        let (status, _, body) = ask(&here, "GET", path, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(
            !body.contains("secret") && !body.contains("hidden"),
            "{path}"
        );
    }
    assert_eq!(ask(&here, "GET", "/in", None).await.2, "tool");
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let (status, _, _) = ask(&here, method, "/tool", None).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    assert_eq!(std::fs::read_to_string(here.join("tool")).unwrap(), "tool");
}
