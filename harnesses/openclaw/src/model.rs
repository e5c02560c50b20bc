//! Model references and what an agent may use.

use occ_core::driver::DocumentProblem;

use crate::{document::Place, message};

/// `provider/model`; the model's name may have further slashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelRef<'a> {
    pub provider: &'a str,
    pub name: &'a str,
    pub text: &'a str,
}

impl<'a> ModelRef<'a> {
    pub fn parse(text: &'a str) -> Option<Self> {
        let (provider, name) = text.split_once('/')?;
        let plain = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control());
        (plain(provider) && plain(name)).then_some(Self { provider, name, text })
    }

    /// The model that is written here.
    pub fn at(place: &Place<'a>) -> Result<Option<Self>, DocumentProblem> {
        match place.text()? {
            None => Ok(None),
            Some(text) => Self::parse(text).map(Some).ok_or_else(|| place.problem(message::MODEL)),
        }
    }
}

/// A model and where it is written.
pub type Written<'a> = (ModelRef<'a>, Place<'a>);

/// A model setting: a text, or `{primary, fallbacks}`.
#[derive(Debug, Clone, Default)]
pub struct Choice<'a> {
    pub primary: Option<Written<'a>>,
    pub fallbacks: Vec<Written<'a>>,
}

impl<'a> Choice<'a> {
    pub fn at(place: &Place<'a>) -> Result<Self, DocumentProblem> {
        let written = |place: Place<'a>| Ok(ModelRef::at(&place)?.map(|model| (model, place)));
        if !place.exists() || place.as_text().is_some() {
            return Ok(Self {
                primary: written(place.clone())?,
                fallbacks: Vec::new(),
            });
        }
        if place.object().is_err() {
            return Err(place.problem(message::TEXT_OR_OBJECT));
        }
        let fallbacks = place.get("fallbacks")?.items()?.into_iter();
        let fallbacks = fallbacks
            .filter_map(|item| written(item).transpose())
            .collect::<Result<_, _>>()?;
        Ok(Self {
            primary: written(place.get("primary")?)?,
            fallbacks,
        })
    }
}

/// Settings of an agent, besides `model`, that name models it uses for some of its work.
const FURTHER: [&str; 6] = [
    "utilityModel",
    "decisionModel",
    "imageModel",
    "pdfModel",
    "voiceModel",
    "subagents",
];

/// The texts by which an agent names models for some of its work. What is not a model reference is none of them.
pub fn further_models<'a>(agent: &Place<'a>) -> Result<Vec<&'a str>, DocumentProblem> {
    let mut models = Vec::new();
    for key in FURTHER {
        let mut place = agent.get(key)?;
        if key == "subagents" {
            place = place.get("model")?;
        }
        models.extend(place.as_text());
        if place.object().is_ok() {
            models.extend(place.get("primary")?.as_text());
            models.extend(place.get("fallbacks")?.items()?.iter().filter_map(Place::as_text));
        }
    }
    Ok(models)
}
