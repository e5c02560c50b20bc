//! Every route of the OpenAPI document, and what it takes.

use std::collections::BTreeSet;

use occ_test_support::drivers::Ids;
use reqwest::Method;
use serde_json::{Value, json};

/// As whom a route is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Anyone,
    Key,
    Session,
}

/// What body a route takes.
pub struct Body {
    pub schema: Value,
    /// At most so many bytes.
    pub limit: usize,
}

pub struct Route {
    pub method: Method,
    pub template: String,
    /// The parameters of its path, and those of its query.
    pub places: Vec<String>,
    pub query: Vec<String>,
    pub body: Option<Body>,
    pub caller: Caller,
    /// Every status that the document gives.
    pub statuses: BTreeSet<u16>,
}

impl Route {
    /// Its path, with what is there in the place of its parameters.
    pub fn path(&self, named: &Ids) -> String {
        self.places.iter().fold(self.template.clone(), |path, place| {
            let id = named.get(place.as_str());
            let id = id.unwrap_or_else(|| panic!("{}: nothing is there for {place}", self.template));
            path.replace(&format!("{{{place}}}"), id)
        })
    }

    /// The same with this text in the place of one of them.
    pub fn path_with(&self, named: &Ids, place: &str, text: &str) -> String {
        let template = self.template.replace(&format!("{{{place}}}"), text);
        let others = self.places.iter().filter(|other| *other != place);
        others.fold(template, |path, other| {
            path.replace(&format!("{{{other}}}"), &named[other.as_str()])
        })
    }

    /// Whether it answers whatever it is asked with: it reads no body and no query.
    pub fn is_deaf(&self) -> bool {
        !self.statuses.contains(&400)
    }

    /// An identity provider adds to the query what it likes, and who comes back without having begun is recorded.
    pub fn is_callback(&self) -> bool {
        self.template.ends_with("/oidc/callback")
    }
}

/// All of them.
pub fn routes() -> Vec<Route> {
    let document = occ_api::openapi();
    let mut all = Vec::new();
    for (template, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            all.push(route(template, method, operation));
        }
    }
    assert!(all.len() > 80, "{}", all.len());
    all
}

/// Those with a body, and what it is.
pub fn taking() -> Vec<(Route, Body)> {
    let taking = routes().into_iter().filter_map(|mut route| {
        let body = route.body.take()?;
        Some((route, body))
    });
    let taking: Vec<_> = taking.collect();
    assert!(taking.len() > 25, "{}", taking.len());
    taking
}

fn route(template: &str, method: &str, operation: &Value) -> Route {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query = parameters.filter(|parameter| parameter["in"] == "query");
    let name = |parameter: &Value| parameter["name"].as_str().expect("a name").to_owned();
    let places = template
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let session = json!({ "session": [] });
    let caller = match operation.get("security").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => Caller::Anyone,
        Some([only]) if *only == session || only.get("csrf").is_some() => Caller::Session,
        _ => Caller::Key,
    };
    let responses = operation["responses"].as_object().expect("responses");
    Route {
        method: method.to_uppercase().parse().expect("a method"),
        template: template.to_owned(),
        places: places.map(str::to_owned).collect(),
        query: query.map(name).collect(),
        body: operation.get("requestBody").map(body),
        caller,
        statuses: responses
            .keys()
            .map(|status| status.parse().expect("a status"))
            .collect(),
    }
}

fn body(described: &Value) -> Body {
    let text = described["description"].as_str().expect("a description");
    let kib = text.split(' ').find_map(|word| word.parse::<usize>().ok());
    Body {
        schema: described["content"]["application/json"]["schema"].clone(),
        limit: kib.expect("a limit") * 1024,
    }
}
