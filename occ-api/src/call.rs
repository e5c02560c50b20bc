//! One request on its way through the checks that every route shares, in their order (spec/engine 2.3).

use std::{str::FromStr, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, MatchedPath, RawPathParams, Request},
    http::{HeaderMap, Method, header, request::Parts},
};
use occ_core::{
    admission::{DetailCode, Refusal},
    control::{Caller, ControlPlane, Origin, PAGE_MAX, PageQuery, SessionToken},
    id::{InvalidId, RequestId},
    reason::ApiCode,
    trace::TraceContext,
};
use serde::de::DeserializeOwned;

use crate::{
    Api,
    access::Access,
    catalogue,
    client::Client,
    credential::{self, Recognised},
    headers,
    listeners::Listeners,
    operation::Operation,
    reject::Rejected,
    server::Stopping,
    strict_json,
};

/// How long a caller may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// What is known of a request before anybody is recognised.
struct Arrived {
    parts: Parts,
    body: Bytes,
    operation: Option<&'static Operation>,
    request: RequestId,
}

/// An authenticated request with its body.
pub(crate) struct Call {
    pub plane: ControlPlane,
    pub caller: Caller,
    /// The session that it came with.
    pub session: Option<SessionToken>,
    pub client: Client,
    /// Resolves when the server stops; long answers end then.
    pub stopping: Stopping,
    pub listeners: Listeners,
    path: Vec<(String, String)>,
    query: Option<String>,
    body: Bytes,
}

/// A request of somebody who wants to be recognised, with its body.
pub(crate) struct Guest {
    pub plane: ControlPlane,
    pub access: Arc<Access>,
    pub client: Client,
    request: RequestId,
    headers: HeaderMap,
    query: Option<String>,
    body: Bytes,
}

async fn arrived(request: Request) -> Result<Arrived, Refusal> {
    let (parts, body) = request.into_parts();
    let request = parts
        .extensions
        .get::<RequestId>()
        .copied()
        .unwrap_or_else(RequestId::random);
    let template = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let operation = catalogue::find(&parts.method, template);
    let body = checked_body(&parts, operation, body).await?;
    Ok(Arrived {
        parts,
        body,
        operation,
        request,
    })
}

impl FromRequest<Api> for Call {
    type Rejection = Rejected;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Rejected> {
        use axum::extract::FromRequestParts as _;

        let Arrived {
            mut parts,
            body,
            operation,
            request,
        } = arrived(request).await?;
        let client = Client::of(&parts, &api.access)?;
        let Recognised { mut caller, session } = credential::recognise(&parts, &client, api, request).await?;
        // Without an exporter here, the work is in the caller's trace.
        caller.trace = caller.trace.or_else(|| parts.extensions.get::<TraceContext>().cloned());
        caller.conditions = headers::conditions(&parts.headers, operation, &parts.method, parts.uri.path(), &body)?;
        let stopping = parts.extensions.get::<Stopping>().cloned().unwrap_or_default();
        // Percent-encoding that is not UTF-8 names nothing.
        let params = RawPathParams::from_request_parts(&mut parts, &())
            .await
            .map_err(|_| Refusal::not_found())?;
        let path = params
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let query = parts.uri.query().map(str::to_owned);
        Ok(Self {
            plane: api.plane.clone(),
            caller,
            session,
            client,
            stopping,
            listeners: api.listeners.clone(),
            path,
            query,
            body,
        })
    }
}

impl FromRequest<Api> for Guest {
    type Rejection = Rejected;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Rejected> {
        let Arrived {
            parts, body, request, ..
        } = arrived(request).await?;
        let client = Client::of(&parts, &api.access)?;
        // Another site must not sign a browser in as somebody of its choice. What an identity provider sends a browser back with is
        // bound to the browser by other means.
        if parts.method != Method::GET {
            client.check_origin(&parts.headers, &api.access, false)?;
        }
        Ok(Self {
            plane: api.plane.clone(),
            access: Arc::clone(&api.access),
            client,
            request,
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers,
            body,
        })
    }
}

impl Guest {
    /// Where the attempt comes from.
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            address: self.client.address,
            request: self.request,
        }
    }

    pub(crate) const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The query as it came.
    pub(crate) fn raw_query(&self) -> &str {
        self.query.as_deref().unwrap_or_default()
    }

    /// Queries are closed: none is taken.
    pub(crate) fn no_query(&self) -> Result<(), Refusal> {
        query(self.query.as_deref(), &[]).map(drop)
    }

    /// The body as its type.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        strict_json::read(&self.body)
    }
}

/// Step 2: the body's size and type, by the route.
async fn checked_body(parts: &Parts, operation: Option<&Operation>, body: Body) -> Result<Bytes, Refusal> {
    let taken = operation.and_then(|operation| operation.body.as_ref());
    let limit = taken.map_or(64 * 1024, |body| body.limit);
    let declared = parts
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit as u64) {
        return Err(Refusal::new(ApiCode::PayloadTooLarge));
    }
    let read = tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, limit)).await;
    let bytes = match read {
        Err(_) => return Err(Refusal::invalid("The request body did not arrive in time.")),
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return Err(unreadable(&error)),
    };
    match taken {
        None if bytes.is_empty() => Ok(bytes),
        None => Err(Refusal::invalid("This request takes no body.")),
        Some(_) if is_json(&parts.headers) => Ok(bytes),
        Some(_) => Err(Refusal::new(ApiCode::UnsupportedMediaType)),
    }
}

/// Too long, or broken off: only the first is the limit's doing.
fn unreadable(error: &axum::Error) -> Refusal {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = source {
        if cause.to_string().contains("length limit") {
            return Refusal::new(ApiCode::PayloadTooLarge);
        }
        source = cause.source();
    }
    Refusal::invalid("The request body could not be read.")
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    // Of two, somebody on the way may have believed the other.
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let value = value.to_str().unwrap_or_default();
    let mut parts = value.split(';').map(|part| part.trim().to_ascii_lowercase());
    parts.next().as_deref() == Some("application/json") && parts.all(|part| part == "charset=utf-8" || part.is_empty())
}

impl Call {
    /// Where the request comes from.
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            address: self.client.address,
            request: self.caller.request,
        }
    }

    /// An id in the path.
    pub(crate) fn id<T: FromStr<Err = InvalidId>>(&self, name: &str) -> Result<T, Refusal> {
        self.text(name).parse().map_err(|error: InvalidId| {
            // Prefixes are static; the message names the parameter and what it starts with.
            let message = match error.prefix {
                "ns_" => "The Namespace id in the path must be ns_ and a lowercase UUID v4.",
                "cfg_" => "The Configuration id in the path must be cfg_ and a lowercase UUID v4.",
                "sec_" => "The Secret id in the path must be sec_ and a lowercase UUID v4.",
                "agt_" => "The Agent id in the path must be agt_ and a lowercase UUID v4.",
                "rev_" => "The version id in the path must be rev_ and a lowercase UUID v4.",
                "sa_" => "The service account id in the path must be sa_ and a lowercase UUID v4.",
                "cs_" => "The credential source id in the path must be cs_ and a lowercase UUID v4.",
                "pre_" => "The Preset id in the path must be pre_ and a lowercase UUID v4.",
                "key_" => "The service key id in the path must be key_ and a lowercase UUID v4.",
                _ => "An id in the path has not its form.",
            };
            Refusal::invalid(message).at(&format!("/{name}"), DetailCode::InvalidFormat)
        })
    }

    /// A text in the path.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.path
            .iter()
            .find(|(found, _)| found == name)
            .map_or("", |(_, value)| value)
    }

    /// Queries are closed: none is taken.
    pub(crate) fn no_query(&self) -> Result<(), Refusal> {
        self.query(&[]).map(drop)
    }

    /// The query, of which only `known` names are taken, each once. Values are plain: nothing that is taken needs escaping.
    pub(crate) fn query(&self, known: &[&str]) -> Result<Vec<(String, String)>, Refusal> {
        query(self.query.as_deref(), known)
    }

    /// Which page of a list is wanted.
    pub(crate) fn page(&self) -> Result<PageQuery, Refusal> {
        let mut query = PageQuery::default();
        for (name, value) in self.query(&["limit", "cursor"])? {
            if name == "limit" {
                query.limit = limit(&value)?;
            } else {
                let malformed = |_| {
                    Refusal::invalid("cursor must be the nextCursor of the page before.")
                        .at("/cursor", DetailCode::InvalidFormat)
                };
                query.after = Some(value.parse().map_err(malformed)?);
            }
        }
        Ok(query)
    }

    /// The body as its type.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        strict_json::read(&self.body)
    }
}

/// A query, of which only `known` names are taken, each once.
fn query(given: Option<&str>, known: &[&str]) -> Result<Vec<(String, String)>, Refusal> {
    let refused =
        || Refusal::invalid("The query has a parameter that is not known here.").at("", DetailCode::UnknownField);
    let mut found: Vec<(String, String)> = Vec::new();
    for pair in given.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !known.contains(&name) || found.iter().any(|(seen, _)| seen == name) {
            return Err(refused());
        }
        found.push((name.to_owned(), value.to_owned()));
    }
    Ok(found)
}

/// How many items of a list are wanted.
pub(crate) fn limit(value: &str) -> Result<usize, Refusal> {
    let digits = (1..=4).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit());
    let limit = value
        .parse()
        .ok()
        .filter(|limit| digits && (1..=PAGE_MAX).contains(limit));
    limit.ok_or_else(|| {
        Refusal::invalid("limit must be a number from 1 to 1000.").at("/limit", DetailCode::InvalidValue)
    })
}
