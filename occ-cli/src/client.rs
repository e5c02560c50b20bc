//! The API's client: typed by what the control plane's own views are.

use std::time::Duration;

use occ_core::{reason::ApiCode, secret_value::SecretValue};
use reqwest::{
    Method, StatusCode, Url,
    header::{self, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::exit::{Done, Exit, Failure};

/// How long one request may take: a little longer than the API's own limit.
const TIMEOUT: Duration = Duration::from_secs(130);
/// The same for a read, which the API answers from its database.
const READ_TIMEOUT: Duration = Duration::from_secs(15);

/// A client of one control plane.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    key: HeaderValue,
}

/// What the API answered, and where the next page of a list begins.
struct Answered {
    data: Value,
    next: Option<String>,
    /// Where the work of an accepted request can be followed.
    location: Option<String>,
}

/// What the API refused, with its own words.
#[derive(Debug)]
pub(crate) struct Refused {
    pub code: String,
    pub message: String,
    pub details: Vec<String>,
}

/// Why a call brought nothing.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The API answered with a refusal.
    Refused(Refused),
    /// The API could not be asked, or answered something else.
    Failed(Failure),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Failed(failure) => failure,
            CallError::Refused(Refused {
                code, message, details, ..
            }) => {
                let mut lines = vec![format!("{code}: {message}")];
                lines.extend(details.iter().map(|detail| format!("  {detail}")));
                Self::refused(lines.join("\n")).with_code(code)
            }
        }
    }
}

/// An HTTP client with this limit for each request.
pub(crate) fn http(timeout: Duration) -> Done<reqwest::Client> {
    // The process's TLS provider; a second call keeps the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .timeout(timeout)
        .no_proxy()
        // A redirect would carry the key to whom it names.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|_| Failure::startup("the HTTP client could not be set up"))
}

impl Client {
    /// A client of the API at `base` with a service key.
    pub(crate) fn new(base: &str, key: &SecretValue) -> Done<Self> {
        let base: Url = base
            .parse()
            .ok()
            .filter(|url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host())
            // A password in the address would be sent beside the key, and shown by errors.
            .filter(|url| url.username().is_empty() && url.password().is_none())
            .ok_or_else(|| {
                Failure::usage("the API's address must be an http or https URL, such as http://127.0.0.1:8080")
            })?;
        let mut key = HeaderValue::from_bytes(key.expose())
            .map_err(|_| Failure::usage("the service key holds characters that no key has"))?;
        key.set_sensitive(true);
        Ok(Self {
            http: http(TIMEOUT)?,
            base,
            key,
        })
    }

    /// A `GET`. Of a list, every page.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        let Answered { mut data, mut next, .. } = self.send(Method::GET, path, None::<&()>).await?;
        while let Some(cursor) = next {
            let separator = if path.contains('?') { '&' } else { '?' };
            let page = format!("{path}{separator}cursor={cursor}");
            let mut page = self.send(Method::GET, &page, None::<&()>).await?;
            let (Some(all), Some(more)) = (data.as_array_mut(), page.data.as_array_mut()) else {
                return Err(CallError::Failed(self.foreign()));
            };
            // A server that gives nothing and yet more would keep us for ever.
            next = page.next.filter(|_| !more.is_empty());
            all.append(more);
        }
        serde_json::from_value(data).map_err(|_| CallError::Failed(self.foreign()))
    }

    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, CallError> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// A `POST` of a route that takes no body.
    pub(crate) async fn act<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        self.call(Method::POST, path, None::<&()>).await
    }

    /// The same of a route that says where its work can be followed.
    pub(crate) async fn begin<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Option<String>), CallError> {
        let answered = self.send(Method::POST, path, None::<&()>).await?;
        let data = serde_json::from_value(answered.data).map_err(|_| CallError::Failed(self.foreign()))?;
        Ok((data, answered.location))
    }

    pub(crate) async fn patch<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, CallError> {
        self.call(Method::PATCH, path, Some(body)).await
    }

    /// A `DELETE`; `Value::Null` when the answer has no body.
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, CallError> {
        self.call(Method::DELETE, path, None::<&()>).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, CallError> {
        let answered = self.send(method, path, body).await?;
        serde_json::from_value(answered.data).map_err(|_| CallError::Failed(self.foreign()))
    }

    fn foreign(&self) -> Failure {
        Failure::new(
            Exit::Unreachable,
            format!("{} does not answer as OCC's API does", self.base),
        )
    }

    async fn send(&self, method: Method, path: &str, body: Option<&impl Serialize>) -> Result<Answered, CallError> {
        let url = self
            .base
            .join(path)
            .map_err(|_| CallError::Failed(Failure::usage("an id or a name cannot stand in a path")))?;
        let reads = method == Method::GET;
        let mut request = self.http.request(method, url).header("x-api-key", self.key.clone());
        if reads {
            request = request.timeout(READ_TIMEOUT);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request
            .send()
            .await
            .map_err(|error| CallError::Failed(self.unreachable(&error)))?;
        let status = response.status();
        let location = response.headers().get(header::LOCATION);
        let location = location.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let bytes = response
            .bytes()
            .await
            .map_err(|error| CallError::Failed(self.unreachable(&error)))?;
        let foreign = || CallError::Failed(self.foreign());
        if status == StatusCode::NO_CONTENT {
            return Ok(Answered {
                data: Value::Null,
                next: None,
                location,
            });
        }
        let mut envelope: Value = serde_json::from_slice(&bytes).map_err(|_| foreign())?;
        if status.is_success() {
            return Ok(Answered {
                data: envelope["data"].take(),
                next: envelope["meta"]["nextCursor"].as_str().map(str::to_owned),
                location,
            });
        }
        let error = &envelope["error"];
        let (Some(code), Some(message)) = (error["code"].as_str(), error["message"].as_str()) else {
            return Err(foreign());
        };
        let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
        Err(CallError::Refused(Refused {
            code: code.to_owned(),
            message: message.to_owned(),
            details: details
                .iter()
                .map(|detail| {
                    let path = detail["path"]
                        .as_str()
                        .filter(|path| !path.is_empty())
                        .unwrap_or("the body");
                    format!("{path}: {}", detail["code"].as_str().unwrap_or("?"))
                })
                .collect(),
        }))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let why = if error.is_timeout() {
            "it does not answer in time"
        } else if error.is_connect() {
            "nothing listens there: start it with `occ up`, or name another with --api"
        } else {
            "the connection broke off"
        };
        Failure::new(
            Exit::Unreachable,
            format!("the API at {} cannot be reached: {why}", self.base),
        )
    }
}

impl CallError {
    /// Whether the API refused with this code.
    pub(crate) fn is(&self, code: ApiCode) -> bool {
        matches!(self, Self::Refused(refused) if refused.code == code.code())
    }
}

#[cfg(test)]
mod tests;
