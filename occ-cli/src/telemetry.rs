//! The log on standard error and, with the feature `otel`, traces to a collector.

use clap::ValueEnum;
use occ_core::installation::LogLevel;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt as _, filter_fn},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

#[cfg(feature = "otel")]
mod otel;

/// The form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// What is told to the outside while a command runs.
pub(crate) struct Telemetry {
    #[cfg(feature = "otel")]
    exporter: Option<otel::Exporter>,
}

impl Telemetry {
    /// Starts logging to standard error; `RUST_LOG` wins over the Installation's level. Traces are exported where `OTEL_*` says
    /// so. A second call in one process keeps the first logger.
    pub(crate) fn start(format: LogFormat, level: LogLevel) -> Self {
        // Without the feature the log is all.
        #[cfg_attr(not(feature = "otel"), allow(unused_mut))]
        let mut layers = vec![log(format, level)];
        #[cfg(feature = "otel")]
        let traced = otel::Exporter::from_environment();
        #[cfg(feature = "otel")]
        layers.extend(traced.layer);
        let _ = tracing_subscriber::registry().with(layers).try_init();
        #[cfg(feature = "otel")]
        if let Some(problem) = traced.problem {
            tracing::warn!(code = "TELEMETRY_CONFIGURATION_INVALID", problem, "telemetry.error");
        }
        Self {
            #[cfg(feature = "otel")]
            exporter: traced.exporter,
        }
    }

    /// Sends what is left, within a few seconds.
    // Without the feature nothing is left.
    #[cfg_attr(not(feature = "otel"), allow(clippy::unused_async))]
    pub(crate) async fn end(self) {
        #[cfg(feature = "otel")]
        if let Some(exporter) = self.exporter {
            exporter.end().await;
        }
    }
}

fn log(format: LogFormat, level: LogLevel) -> BoxedLayer {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level.as_str()));
    // Spans are for traces: a line says by itself what it is about.
    let filter = filter.and(filter_fn(|metadata| !metadata.is_span()));
    // Whoever reads the log may be gone, or its disk full: lines are lost then, and no work.
    let layer = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    match format {
        LogFormat::Text => layer.with_filter(filter).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_filter(filter).boxed(),
    }
}
