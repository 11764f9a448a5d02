//! Microsoft Graph's change notifications: every item of `value` repeats the subscription's `clientState`.
//!
//! Nothing is signed: it is the operator's own text that tells Graph from others, so all items must have it. A
//! `validationToken` in the query, when a subscription is made or renewed, is sent back as it is. The tokens of
//! notifications with resource data are not looked at.

use hookgate_sdk::{Event, Json, Provider, Rejection, Response, Verdict, delivery, verification};

struct Graph;

hookgate_sdk::provider!(Graph);

impl Provider for Graph {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        // SharePoint spells it without the capital.
        for name in ["validationToken", "validationtoken"] {
            if let Some(token) = delivery::query(name)? {
                return Response::text(token).respond();
            }
        }
        verify()?;
        Event {
            id: Json::Body.only_text("/value", "/id")?,
            event_type: match Json::Body.only_text("/value", "/lifecycleEvent")? {
                Some(lifecycle) => Some(lifecycle),
                None => Json::Body.only_text("/value", "/changeType")?,
            },
            ordering_key: match Json::Body.only_text("/value", "/resourceData/id")? {
                Some(id) => Some(id),
                None => Json::Body.only_text("/value", "/resource")?,
            },
            ..Event::default()
        }
        .accept()
    }
}

fn verify() -> Result<(), Rejection> {
    let items = Json::Body.objects("/value")?;
    if items.is_empty() {
        return Err(Rejection::missing_signature("value: no item"));
    }
    items.iter().try_for_each(|item| {
        let state = item.text("/clientState")?;
        verification::check_token("secret", "clientState", state.as_deref())
    })
}
