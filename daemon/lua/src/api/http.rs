//! `hygge.http`: HTTP requests. [`toold_host::http`] and the policy decide which hosts may be reached.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use mlua::Value;
use serde_json::Value as Json;
use toold_engine::need::Need;
use toold_engine::redact::hide;
use toold_engine::tool::ToolError;
use toold_host::http::request::HttpRequest;
use toold_host::http::{BodyEnding, Http, HttpError, HttpLimits, HttpResponse, Requester};

use crate::api::{ApiTable, HostCall, HostReply};
use crate::plugin::secrets;
use crate::vm::args::{Fields, text};
use crate::vm::convert;
use crate::vm::script_run::ScriptRun;

/// Bytes of a body that a script gets by default, and at most.
const KEEP: usize = 5 << 20;
const MAX_KEEP: usize = 16 << 20;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let http = hygge.within("http")?;
    http.waiting("get", "hygge.http.get", |host_call| {
        let mut wanted = ScriptRequest::new(host_call.args.text(1, "url")?);
        wanted.read(host_call, 2)?;
        wanted.send(host_call)
    })?;
    http.waiting("post", "hygge.http.post", |host_call| {
        let mut wanted = ScriptRequest::new(host_call.args.text(1, "url")?);
        wanted.method = "POST".to_owned();
        match host_call.args.value(2) {
            Value::Nil => {}
            Value::Table(_) => wanted.body_json(&host_call.args.json(host_call.lua, 2, "body")?),
            _ => wanted.body = Some(host_call.args.bytes(2, "body")?),
        }
        wanted.read(host_call, 3)?;
        wanted.send(host_call)
    })?;
    http.waiting("request", "hygge.http.request", |host_call| {
        let fields = host_call.args.fields(1, "request")?;
        let mut wanted = ScriptRequest::new(fields.text("url")?);
        wanted.read(host_call, 1)?;
        wanted.send(host_call)
    })?;
    Ok(())
}

/// A request as a script writes it.
struct ScriptRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    limits: HttpLimits,
    auth: Option<SecretAuth>,
}

/// A secret that is sent with the request, and that the script does not see.
struct SecretAuth {
    secret: String,
    header: String,
    /// What stands before the secret.
    scheme: String,
    /// For the scheme `Basic`.
    user: Option<String>,
}

impl SecretAuth {
    fn read(fields: &Fields) -> Result<Self, String> {
        let (header, user) = (fields.optional_text("header")?, fields.optional_text("user")?);
        let scheme = fields.optional_text("scheme")?.unwrap_or_else(|| match (&header, &user) {
            (None, None) => "Bearer".to_owned(),
            (_, Some(_)) => "Basic".to_owned(),
            (Some(_), None) => String::new(),
        });
        let header = header.unwrap_or_else(|| "authorization".to_owned());
        Ok(Self { secret: fields.text("secret")?, header, scheme, user })
    }

    fn value(&self, secret: &str) -> String {
        let value = match &self.user {
            Some(user) => {
                let encoded = STANDARD.encode(format!("{user}:{secret}"));
                hide([encoded.as_str()]);
                encoded
            }
            None => secret.to_owned(),
        };
        format!("{} {value}", self.scheme).trim_start().to_owned()
    }
}

impl ScriptRequest {
    fn new(url: String) -> Self {
        let limits = HttpLimits { max_bytes: KEEP, ..HttpLimits::default() };
        Self { method: "GET".to_owned(), url, headers: Vec::new(), body: None, limits, auth: None }
    }

    /// Reads the options in the argument at this place, if there are any.
    fn read(&mut self, host_call: &HostCall, place: usize) -> Result<(), String> {
        let Some(fields) = host_call.args.optional_fields(place, "opts")? else { return Ok(()) };
        if let Some(method) = fields.optional_text("method")? {
            self.method = method.to_ascii_uppercase();
        }
        if let Some(headers) = fields.optional_fields("headers")? {
            self.read_headers(&fields, &headers)?;
        }
        match fields.get("body")? {
            Value::Nil => {}
            Value::String(bytes) => self.body = Some(bytes.as_bytes().to_vec()),
            other => return Err(fields.mistake("body", "a string (pass a table as json)", &other)),
        }
        let json = fields.get("json")?;
        if !json.is_nil() {
            let json = convert::to_json(host_call.lua, &json).map_err(|error| fields.wrong("json", error))?;
            self.body_json(&json);
        }
        self.auth = fields.optional_fields("auth")?.map(|auth| SecretAuth::read(&auth)).transpose()?;
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
        let expected =
            || fields.wrong("headers", "expected a table with string keys, and strings or lists of strings as values");
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

    fn send(
        mut self,
        host_call: &HostCall,
    ) -> Result<impl Future<Output = Result<HostReply, String>> + Send + use<>, String> {
        let plugin = &host_call.context.plugin;
        plugin.requires("network", |can| can.network)?;
        let call = host_call.call.clone();
        let cx = call.authority()?.clone();
        let called = host_call.args.function;
        let tell = move |error: HttpError| format!("{called}: {error}");
        let request = HttpRequest::new(&self.method, &self.url, &self.headers, self.body.take()).map_err(tell)?;
        if !matches!(self.method.as_str(), "GET" | "HEAD") {
            // The request may have changed something on the server, which a cached result would not.
            cx.do_not_keep();
        }
        if let Some(auth) = &self.auth {
            secrets::declared(plugin, &auth.secret).map_err(|why| format!("{called}: {why}"))?;
            cx.do_not_keep();
        }
        let http: Arc<Http> = plugin.shared.http.clone();
        let plugin = plugin.clone();
        Ok(async move {
            let mut request = request;
            if let Some(auth) = &self.auth {
                let failed = |why: String| format!("{called}: {why}");
                let need = secrets::need(&auth.secret, Some(&request.host_port()));
                call.require(need).await.map_err(|error| failed(error.to_string()))?;
                let secret = secrets::value(&plugin, &auth.secret).await.map_err(failed)?;
                // A redirect to another host goes without it.
                request = request.with_header(&auth.header, &auth.value(&secret)).map_err(tell)?;
            }
            // The call's own limit stops the script; this shorter one leaves it time to report the error.
            let remaining = call.interrupt.remaining().saturating_sub(Duration::from_millis(50));
            let limits = HttpLimits { timeout: self.limits.timeout.min(remaining), ..self.limits };
            let response = http.send(request, limits, &OnBehalf(call), &cx.cancel).await.map_err(tell)?;
            reply(response, called)
        })
    }
}

/// Permissions are checked with the plugin chain of the script that makes the request.
struct OnBehalf(Arc<ScriptRun>);

impl Requester for OnBehalf {
    fn require(&self, need: Need) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.0.require(need))
    }
}

fn reply(response: HttpResponse, called: &str) -> Result<HostReply, String> {
    let is_cut = match &response.ending {
        BodyEnding::Whole => false,
        BodyEnding::TooLong => true,
        BodyEnding::TimedOut => {
            return Err(format!("{called}: the response from {} did not finish in time", response.url));
        }
        BodyEnding::Stopped => return Err(format!("{called}: cancelled")),
        BodyEnding::Broken(why) => {
            return Err(format!("{called}: the response from {} ended early: {why}", response.url));
        }
    };
    let mut headers = serde_json::Map::new();
    for (name, value) in response.headers {
        match headers.get_mut(&name) {
            // RFC 9110, section 5.2; cookies, which may contain commas, are not returned anyway.
            Some(Json::String(before)) => *before = format!("{before}, {value}"),
            Some(_) | None => drop(headers.insert(name, value.into())),
        }
    }
    let mut fields = vec![
        ("status", HostReply::Json(response.status.into())),
        ("ok", HostReply::Json((200..300).contains(&response.status).into())),
        ("headers", HostReply::Json(Json::Object(headers))),
        ("body", HostReply::Bytes(response.body)),
        ("url", HostReply::Json(response.url.into())),
    ];
    if is_cut {
        fields.push(("truncated", HostReply::Json(true.into())));
    }
    Ok(HostReply::Fields(fields))
}
