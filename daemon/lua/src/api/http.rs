//! `hygge.http`: requests to the web. Which hosts may be reached is for [`toold_host::http`] and the policy to say.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mlua::Value;
use serde_json::Value as Json;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_host::http::request::HttpRequest;
use toold_host::http::{BodyEnding, Http, HttpError, HttpLimits, HttpResponse, Requester};

use super::{Asked, Module, Reply};
use crate::args::{Fields, text};
use crate::call::Call;
use crate::convert;

/// Bytes of a body that a script gets when it does not say, and at most.
const KEEP: usize = 5 << 20;
const MAX_KEEP: usize = 16 << 20;

pub(super) fn offer(hygge: &Module) -> mlua::Result<()> {
    let http = hygge.within("http")?;
    http.waiting("get", "hygge.http.get", |asked| {
        let mut wanted = Wanted::new(asked.args.text(1, "url")?);
        wanted.read(asked, 2)?;
        wanted.send(asked)
    })?;
    http.waiting("post", "hygge.http.post", |asked| {
        let mut wanted = Wanted::new(asked.args.text(1, "url")?);
        wanted.method = "POST".to_owned();
        match asked.args.value(2) {
            Value::Nil => {}
            Value::Table(_) => wanted.body_json(&asked.args.json(asked.lua, 2, "body")?),
            _ => wanted.body = Some(asked.args.bytes(2, "body")?),
        }
        wanted.read(asked, 3)?;
        wanted.send(asked)
    })?;
    http.waiting("request", "hygge.http.request", |asked| {
        let fields = asked.args.fields(1, "request")?;
        let mut wanted = Wanted::new(fields.text("url")?);
        wanted.read(asked, 1)?;
        wanted.send(asked)
    })?;
    Ok(())
}

/// A request as a script writes it.
struct Wanted {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    limits: HttpLimits,
}

impl Wanted {
    fn new(url: String) -> Self {
        let limits = HttpLimits { max_bytes: KEEP, ..HttpLimits::default() };
        Self { method: "GET".to_owned(), url, headers: Vec::new(), body: None, limits }
    }

    /// Options in the argument at this place, where there are any.
    fn read(&mut self, asked: &Asked, place: usize) -> Result<(), String> {
        let Some(fields) = asked.args.optional_fields(place, "opts")? else { return Ok(()) };
        if let Some(method) = fields.optional_text("method")? {
            self.method = method.to_ascii_uppercase();
        }
        if let Some(headers) = fields.optional_fields("headers")? {
            self.read_headers(&fields, &headers)?;
        }
        match fields.get("body")? {
            Value::Nil => {}
            Value::String(bytes) => self.body = Some(bytes.as_bytes().to_vec()),
            other => return Err(fields.mistake("body", "a string (a table goes under json)", &other)),
        }
        let json = fields.get("json")?;
        if !json.is_nil() {
            let json = convert::to_json(asked.lua, &json).map_err(|error| fields.wrong("json", error))?;
            self.body_json(&json);
        }
        if let Some(timeout) = fields.optional_duration("timeout")? {
            self.limits.timeout = timeout;
        }
        if let Some(bytes) = fields.optional_number("max_bytes")? {
            self.limits.max_bytes = (bytes as usize).min(MAX_KEEP);
        }
        if let Some(redirects) = fields.optional_number("redirects")? {
            self.limits.redirects = redirects as usize;
        }
        Ok(())
    }

    /// Values are texts, or lists of texts.
    fn read_headers(&mut self, fields: &Fields, headers: &Fields) -> Result<(), String> {
        let expected = || fields.wrong("headers", "expected strings, or lists of strings, under strings");
        for pair in headers.table.pairs::<Value, Value>() {
            let (name, value) = pair.map_err(|error| error.to_string())?;
            let name = text(&name).ok_or_else(expected)?;
            let Value::Table(list) = value else {
                self.headers.push((name, text(&value).ok_or_else(expected)?));
                continue;
            };
            for value in list.sequence_values::<Value>() {
                let value = value.map_err(|error| error.to_string())?;
                self.headers.push((name.clone(), text(&value).ok_or_else(expected)?));
            }
        }
        // Tables have no order, and requests should not differ from one run to the next.
        self.headers.sort();
        Ok(())
    }

    fn body_json(&mut self, json: &Json) {
        self.body = Some(json.to_string().into_bytes());
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            self.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
    }

    fn send(mut self, asked: &Asked) -> Result<impl Future<Output = Result<Reply, String>> + Send + use<>, String> {
        let plugin = &asked.home.plugin;
        plugin.requires("network", |can| can.network)?;
        let call = asked.call.clone();
        let cx = call.cx()?.clone();
        let called = asked.args.function;
        let tell = move |error: HttpError| format!("{called}: {error}");
        let request = HttpRequest::new(&self.method, &self.url, &self.headers, self.body.take()).map_err(tell)?;
        if !matches!(self.method.as_str(), "GET" | "HEAD") {
            // It may have changed something there, which serving its result again would not.
            cx.do_not_keep();
        }
        let http: Arc<Http> = plugin.shared.http.clone();
        Ok(async move {
            // The call's own limit stops the script; this one only leaves it time to hear so.
            let remaining = call.brake.remaining().saturating_sub(Duration::from_millis(50));
            let limits = HttpLimits { timeout: self.limits.timeout.min(remaining), ..self.limits };
            let response = http.send(request, limits, &OnBehalf(call), &cx.cancel).await.map_err(tell)?;
            reply(response, called)
        })
    }
}

/// What is reached is judged with the chain of plugins of the script that reaches for it.
struct OnBehalf(Arc<Call>);

impl Requester for OnBehalf {
    fn require(&self, need: Need) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.0.require(need))
    }
}

fn reply(response: HttpResponse, called: &str) -> Result<Reply, String> {
    let is_cut = match &response.ending {
        BodyEnding::Whole => false,
        BodyEnding::TooLong => true,
        BodyEnding::TimedOut => return Err(format!("{called}: the answer of {} did not end in time", response.url)),
        BodyEnding::Stopped => return Err(format!("{called}: cancelled")),
        BodyEnding::Broken(why) => return Err(format!("{called}: the answer of {} broke off: {why}", response.url)),
    };
    let mut headers = serde_json::Map::new();
    for (name, value) in response.headers {
        match headers.get_mut(&name) {
            // RFC 9110, section 5.2; cookies, which may hold commas, are not kept anyway.
            Some(Json::String(before)) => *before = format!("{before}, {value}"),
            Some(_) | None => drop(headers.insert(name, value.into())),
        }
    }
    let mut fields = vec![
        ("status", Reply::Json(response.status.into())),
        ("ok", Reply::Json((200..300).contains(&response.status).into())),
        ("headers", Reply::Json(Json::Object(headers))),
        ("body", Reply::Bytes(response.body)),
        ("url", Reply::Json(response.url.into())),
    ];
    if is_cut {
        fields.push(("truncated", Reply::Json(true.into())));
    }
    Ok(Reply::Fields(fields))
}
