//! Failures of HTTP in the words of this daemon: the SDK's name its types.

use std::error::Error;
use std::io;

use rmcp::transport::streamable_http_client::StreamableHttpError;

/// Why an answer of a server is none, as a sentence about the server; `None` when it did not answer at all.
pub(super) fn of_answer(error: &(dyn Error + 'static)) -> Option<String> {
    http_errors(error).next().and_then(in_words)
}

/// Why nothing was heard of a server, without the layers around the cause.
pub(super) fn of_silence(error: &(dyn Error + 'static)) -> Option<String> {
    http_errors(error).find_map(|error| {
        let StreamableHttpError::Client(client) = error else { return None };
        let mut cause: &dyn Error = client;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Some(format!("it can't be reached: {cause}"))
    })
}

/// Whether the server no longer reads from its pipe.
pub(super) fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    causes.any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|found| found.kind() == io::ErrorKind::BrokenPipe))
}

/// The errors of HTTP among an error and its causes.
fn http_errors<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e StreamableHttpError<reqwest::Error>> {
    std::iter::successors(Some(error), |&error| error.source()).filter_map(|error| error.downcast_ref())
}

fn in_words(error: &StreamableHttpError<reqwest::Error>) -> Option<String> {
    Some(match error {
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP ") => {
            format!("it answered {text}")
        }
        StreamableHttpError::UnexpectedServerResponse(text) => text.clone().into_owned(),
        StreamableHttpError::HttpStatus(status) => format!("it answered {status}"),
        StreamableHttpError::UnexpectedContentType(Some(kind)) => {
            format!("it answered with {kind}: expected JSON or a stream of events")
        }
        StreamableHttpError::UnexpectedContentType(None) => {
            "it answered without a content type: expected JSON or a stream of events".to_owned()
        }
        StreamableHttpError::ResponseBodyTooLarge { max_size } => format!("its answer is longer than {max_size} bytes"),
        StreamableHttpError::UnexpectedEndOfStream => "its answer ended too early".to_owned(),
        StreamableHttpError::SessionExpired => "it knows neither the session nor a new one (HTTP 404)".to_owned(),
        _ => return None,
    })
}
