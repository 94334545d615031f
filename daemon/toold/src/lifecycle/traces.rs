//! Traces of calls for OpenTelemetry: a span for each call, with its steps below it, sent to a collector.
//!
//! The engine creates the spans ([`SPANS`]); this module exports them. None are created while no
//! collector is configured.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use futures_util::future::Either;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{self as spans, TracerProvider};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use toold_engine::trace::SPANS;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::config::process::TraceConfig;

/// The exporter of spans. Buffers some seconds of them, to send them together.
#[derive(Clone)]
pub struct Traces {
    provider: SdkTracerProvider,
    poster: Poster,
}

/// How long a collector may take to accept a batch; after that the batch is lost.
const PATIENCE: Duration = Duration::from_secs(3);

impl Traces {
    /// `None` when no collector is configured.
    ///
    /// # Errors
    /// Its address is invalid.
    pub fn new(config: &TraceConfig) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
        let wrong = || format!("trace.otlp_endpoint: {endpoint:?} is no address such as http://127.0.0.1:4318");
        let mut url = reqwest::Url::parse(endpoint).with_context(wrong)?;
        anyhow::ensure!(matches!(url.scheme(), "http" | "https"), wrong());
        if url.path() == "/" {
            url.set_path("/v1/traces");
        }
        let poster = Poster::default();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(poster.clone())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url.as_str())
            .with_timeout(PATIENCE)
            .build()
            .with_context(wrong)?;
        let resource = Resource::builder()
            .with_service_name("toold")
            .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(opentelemetry::KeyValue::new("process.pid", i64::from(std::process::id())));
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sample.clamp(0.0, 1.0))));
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_sampler(sampler)
            .with_batch_exporter(exporter)
            .build();
        Ok(Some(Self { provider, poster }))
    }

    /// The layer that receives the engine's spans, and no others.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: tracing::Subscriber + Send + Sync + for<'a> LookupSpan<'a>,
    {
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("toold"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false);
        layer.with_filter(Targets::new().with_target(SPANS, LevelFilter::TRACE))
    }

    /// Call it once the runtime that sends spans is running; until then they wait.
    pub fn begin(&self) {
        // There is one runtime, so it is the same each time.
        let _ = self.poster.runtime.set(tokio::runtime::Handle::current());
    }

    /// Sends the remaining spans, and waits until they are accepted, for a few seconds at most.
    pub async fn end(self) {
        // The library blocks its own thread, which depends on this runtime.
        let ended = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(PATIENCE)).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last traces are lost");
        }
    }
}

/// Runs work as a part of its caller's trace. `traceparent` is a header of the W3C's Trace Context;
/// an invalid one is ignored.
pub fn in_trace_of<F: Future>(traceparent: Option<&str>, work: F) -> impl Future<Output = F::Output> + use<F> {
    match traceparent {
        None => Either::Left(work),
        Some(parent) => {
            let carrier = std::collections::HashMap::from([("traceparent".to_owned(), parent.to_owned())]);
            let parent = TraceContextPropagator::new().extract(&carrier);
            Either::Right(spans::FutureExt::with_context(work, parent))
        }
    }
}

/// Wraps work for a task of its own in the current trace.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    spans::FutureExt::with_current_context(work)
}

/// Posts on the daemon's runtime; the library calls it from a thread of its own.
#[derive(Clone, Debug, Default)]
struct Poster {
    runtime: Arc<OnceLock<tokio::runtime::Handle>>,
    client: Arc<OnceLock<reqwest::Client>>,
}

#[async_trait::async_trait]
impl HttpClient for Poster {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = self.runtime.get().ok_or("the daemon has not begun")?;
        let client = self.client()?;
        let request = reqwest::Request::try_from(request)?;
        let posted = runtime.spawn(async move {
            let answer = client.execute(request).await?;
            let status = answer.status();
            reqwest::Result::Ok((status, answer.bytes().await?))
        });
        let (status, body) = posted.await??;
        Ok(Response::builder().status(status).body(body)?)
    }
}

impl Poster {
    fn client(&self) -> Result<reqwest::Client, HttpError> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        // A collector is the user's own, at whatever address: the network guard does not apply.
        let builder = reqwest::Client::builder().tls_backend_preconfigured(toold_host::http::tls_config()?);
        let made = builder.no_proxy().timeout(PATIENCE).build()?;
        Ok(self.client.get_or_init(|| made).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(endpoint: &str) -> anyhow::Result<Option<Traces>> {
        Traces::new(&TraceConfig { otlp_endpoint: Some(endpoint.to_owned()), ..TraceConfig::default() })
    }

    #[test]
    fn a_collector_has_an_address() {
        assert!(Traces::new(&TraceConfig::default()).unwrap().is_none());
        assert!(of("http://127.0.0.1:9").unwrap().is_some());
        for wrong in ["127.0.0.1:4318", "file:///x", "collector"] {
            let error = of(wrong).err().unwrap().to_string();
            assert!(error.contains("trace.otlp_endpoint"), "{error}");
        }
    }
}
