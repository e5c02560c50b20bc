//! The W3C trace context of a request, kept with the work that it causes (docs/adr/0013).
//!
//! This crate opens `tracing` spans, and knows no exporter. Which trace a span belongs to is known to the exporter of the
//! program, if there is one: it says so through the [`Tracer`] that the program installs. Without one nothing is asked.

use std::sync::OnceLock;

use tracing::Span;

/// Longest `tracestate` that is kept, in characters: what the W3C asks everybody to pass on.
const STATE_MAX: usize = 512;
/// Most entries of a `tracestate`.
const STATE_ENTRIES_MAX: usize = 32;
/// Length of a `traceparent` of version 00.
const PARENT_LEN: usize = 55;

/// A place in a trace, as the headers `traceparent` and `tracestate` have it. Holds nothing but what their grammar allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    parent: String,
    state: Option<String>,
}

impl TraceContext {
    /// Reads the values of `traceparent` and `tracestate`. `None` for what is no context: it is ignored, and nobody is refused
    /// for it. A state that is malformed or too long is left out alone.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        Some(Self {
            parent: parsed_parent(parent.trim())?,
            state: state.and_then(parsed_state),
        })
    }

    /// The value of `traceparent`, in version 00: 55 characters.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// The value of `tracestate`: at most 512 characters.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A later version may append fields; its first four mean what they mean in version 00.
fn parsed_parent(text: &str) -> Option<String> {
    let (known, rest) = text.split_at_checked(PARENT_LEN)?;
    let mut parts = known.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let sized = version.len() == 2 && trace.len() == 32 && span.len() == 16 && flags.len() == 2;
    let hex = [version, trace, span, flags].into_iter().all(is_hex);
    let zero = |id: &str| id.bytes().all(|b| b == b'0');
    let ends = rest.is_empty() || (version != "00" && rest.starts_with('-'));
    if parts.next().is_some() || !sized || !hex || version == "ff" || zero(trace) || zero(span) || !ends {
        return None;
    }
    // Sampled, and random; the others are nobody's yet.
    let flags = u8::from_str_radix(flags, 16).ok()? & 0x03;
    Some(format!("00-{trace}-{span}-{flags:02x}"))
}

fn parsed_state(text: &str) -> Option<String> {
    let mut entries: Vec<(&str, &str)> = Vec::new();
    for entry in text.split(',').map(|entry| entry.trim_matches([' ', '\t'])) {
        if entry.is_empty() {
            continue;
        }
        let (key, value) = entry.split_once('=')?;
        let repeated = entries.iter().any(|(known, _)| *known == key);
        if repeated || !is_key(key) || !is_value(value) || entries.len() == STATE_ENTRIES_MAX {
            return None;
        }
        entries.push((key, value));
    }
    let state = entries
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(",");
    (1..=STATE_MAX).contains(&state.len()).then_some(state)
}

fn is_key(key: &str) -> bool {
    let allowed = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let begins = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    key.len() <= 256 && key.bytes().next().is_some_and(begins) && key.bytes().all(allowed)
}

fn is_value(value: &str) -> bool {
    let allowed = |b: u8| matches!(b, 0x20..=0x7e) && b != b',' && b != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(allowed)
}

/// Knows to which trace a span belongs: an exporter's part.
pub trait Tracer: Send + Sync {
    /// The span's place in its trace; `None` when it has none.
    fn context(&self, span: &Span) -> Option<TraceContext>;

    /// Makes a span that was not entered yet a child of this context.
    fn adopt(&self, span: &Span, parent: &TraceContext);
}

static TRACER: OnceLock<Box<dyn Tracer>> = OnceLock::new();

/// Installs the tracer of this process. `false` when there is one already, which stays.
pub fn install(tracer: impl Tracer + 'static) -> bool {
    TRACER.set(Box::new(tracer)).is_ok()
}

/// Where the current span is in its trace; `None` without a tracer or outside of a trace.
pub fn current() -> Option<TraceContext> {
    TRACER.get()?.context(&Span::current())
}

/// Makes a span that was not entered yet a child of this context, where there is a tracer.
pub fn adopt(span: &Span, parent: &TraceContext) {
    if let Some(tracer) = TRACER.get() {
        tracer.adopt(span, parent);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parent(text: &str) -> Option<String> {
        TraceContext::parse(text, None).map(|context| context.parent)
    }

    fn state(text: &str) -> Option<String> {
        TraceContext::parse(PARENT, Some(text))
            .expect("the parent is good")
            .state
    }

    #[test]
    fn a_parent_is_read_and_a_later_version_is_read_as_the_first() {
        assert_eq!(parent(PARENT).as_deref(), Some(PARENT));
        assert_eq!(parent(&format!(" {PARENT} ")).as_deref(), Some(PARENT));
        assert_eq!(parent(&PARENT.replacen("00", "cc", 1)).as_deref(), Some(PARENT));
        let later = format!("{}-what-else", PARENT.replacen("00", "cc", 1));
        assert_eq!(parent(&later).as_deref(), Some(PARENT));
        let flags = PARENT.replace("-01", "-ff");
        assert_eq!(parent(&flags), Some(PARENT.replace("-01", "-03")));
    }

    #[test]
    fn garbage_is_no_parent() {
        for garbage in [
            "",
            "00",
            "garbage",
            &PARENT[..54],
            &format!("{PARENT}-more"),
            &format!("{PARENT}0"),
            &PARENT.to_uppercase(),
            &PARENT.replacen("00", "ff", 1),
            &PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &PARENT.replace('-', "_"),
            &PARENT.replace("4bf9", "4b-9"),
            &"ä".repeat(40),
        ] {
            assert_eq!(parent(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn a_state_is_kept_when_it_is_short_and_of_its_form() {
        assert_eq!(
            state("a=1,, b/c@d=x y ,z-*_=\"~").as_deref(),
            Some("a=1,b/c@d=x y,z-*_=\"~")
        );
        let long = format!("a={},b={}", "x".repeat(250), "y".repeat(256));
        assert_eq!(long.len(), 511);
        assert_eq!(state(&long), Some(long.clone()));
        for garbage in [
            "",
            ",",
            "a",
            "a=",
            "=a",
            "A=1",
            "a=1,a=2",
            "a=1=2",
            "a=\u{7}",
            "a=ä",
            &format!("{long},c=1"),
            &format!("a={}", "x".repeat(257)),
            &(0..33).map(|n| format!("k{n}=1")).collect::<Vec<_>>().join(","),
        ] {
            assert_eq!(state(garbage), None, "{garbage}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_kept_is_bounded_and_reads_as_itself(parent in ".{0,80}", state in ".{0,600}", good: bool) {
            let parent = if good { PARENT } else { &parent };
            if let Some(context) = TraceContext::parse(parent, Some(&state)) {
                prop_assert_eq!(context.parent().len(), PARENT_LEN);
                prop_assert!(context.state().is_none_or(|state| state.is_ascii() && state.len() <= STATE_MAX));
                prop_assert_eq!(TraceContext::parse(context.parent(), context.state()), Some(context));
            }
        }
    }
}
