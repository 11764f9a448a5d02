use super::*;

fn manifest(retries_on: Option<&[&str]>) -> Manifest {
    let mut json = serde_json::json!({ "v": 1, "name": "acme", "version": "1" });
    if let Some(on) = retries_on {
        json["retries_on"] = serde_json::json!(on);
    }
    Manifest::parse(&json.to_string()).unwrap()
}

fn response(status: Option<u16>) -> Response {
    Response {
        status,
        headers: vec![("x-first".into(), "yes".into())],
        body: "first".into(),
    }
}

/// Every outcome's answer, as a table.
#[test]
fn every_outcome_has_one_answer() {
    let rejected = [
        RejectKind::MissingSignature,
        RejectKind::BadSignature,
        RejectKind::Stale,
        RejectKind::Malformed,
        RejectKind::Method,
        RejectKind::Media,
        RejectKind::NoEventId,
    ];
    let outcomes = [
        Outcome::Accepted(response(None)),
        Outcome::Duplicate(response(None)),
        Outcome::InFlight,
        Outcome::Handshake(response(Some(200))),
        Outcome::UnknownSource,
        Outcome::Method,
        Outcome::TooLarge,
        Outcome::TooSlow,
        Outcome::Unavailable,
        Outcome::PluginSlow,
        Outcome::PluginFault,
    ];
    let all = outcomes.into_iter().chain(rejected.map(Outcome::Rejected));
    let table: String = all
        .map(|outcome| {
            let name = format!("{outcome:?}");
            let name = name
                .split("(Response")
                .next()
                .unwrap_or_default()
                .to_owned();
            let answer = outcome.answer(None);
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            format!("{name}: {} {:?} {body}\n", answer.status, answer.headers)
        })
        .collect();
    insta::assert_snapshot!(table);
}

#[test]
fn a_duplicate_gets_the_first_body_and_headers_and_a_status_that_was_asked_for() {
    let duplicate = |status| Outcome::Duplicate(response(status)).answer(None);
    let plain = duplicate(None);
    assert_eq!((plain.status, &plain.body[..]), (200, b"first".as_slice()));
    let empty = duplicate(Some(204));
    assert_eq!((empty.status, empty.body.len()), (204, 0));
    for answer in [plain, empty] {
        assert!(answer.headers.contains(&("x-first".into(), "yes".into())));
        assert!(
            answer
                .headers
                .contains(&("hookgate-duplicate".into(), "true".into()))
        );
    }
}

#[test]
fn temporary_outcomes_become_503_where_the_provider_takes_their_status_as_final() {
    let status = |on: Option<&[&str]>, outcome: Outcome| outcome.answer(Some(&manifest(on))).status;
    assert_eq!(status(None, Outcome::InFlight), 409);
    assert_eq!(status(Some(&["5xx"]), Outcome::InFlight), 503);
    assert_eq!(status(Some(&["5xx", "409"]), Outcome::InFlight), 409);
    assert_eq!(status(Some(&["503"]), Outcome::PluginFault), 503);
    assert_eq!(
        status(Some(&["5xx"]), Outcome::Rejected(RejectKind::BadSignature)),
        401
    );
}
