//! Mistakes in a value, in words that a model can act on: what was expected, what came, and what to do.

mod choice;
mod words;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use toold_proto::argument_names::{KnownArguments, explain_unknown};
use toold_proto::cut::cut_chars;
use toold_proto::error::ArgumentError;

use choice::{Choice, choose};
use words::{described, got, one_of, types_in, wrong_type};

/// More mistakes than these help nobody.
const MAX_MISTAKES: usize = 50;

/// The mistakes that these errors of a validation by `schema` stand for.
pub(super) fn in_words(schema: &Value, errors: &[ValidationError<'_>]) -> Vec<ArgumentError> {
    let mut found = Mistakes { schema, list: Vec::new() };
    found.describe_all(errors);
    found.list
}

/// The mistakes that were found so far.
struct Mistakes<'s> {
    schema: &'s Value,
    list: Vec<ArgumentError>,
}

impl<'s> Mistakes<'s> {
    fn add(&mut self, error: &ValidationError<'_>, message: String) {
        if self.list.len() < MAX_MISTAKES {
            self.list.push(ArgumentError { path: error.instance_path().to_string(), message });
        }
    }

    fn describe_all(&mut self, errors: &[ValidationError<'_>]) {
        for error in errors {
            self.describe(error);
        }
    }

    fn describe(&mut self, error: &ValidationError<'_>) {
        use ValidationErrorKind as Kind;
        let value = error.instance();
        let message = match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => match choose(error, context) {
                Choice::Whole(message) => message,
                Choice::Nearest { errors, note } => {
                    let first = self.list.len();
                    self.describe_all(errors);
                    if let Some(mistake) = self.list.get_mut(first) {
                        mistake.message.push_str(&note);
                    }
                    return;
                }
            },
            Kind::OneOfMultipleValid { context } => {
                let fitting = (1..).zip(context).filter(|(_, errors)| errors.is_empty());
                let fitting: Vec<String> = fitting.map(|(number, _)| number.to_string()).collect();
                let which = if fitting.is_empty() { String::new() } else { format!(" ({})", fitting.join(" and ")) };
                format!("matches more than one of {} forms{which}, and may match only one", context.len())
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let holder = self.holder(error).unwrap_or(&Value::Null);
                let known = KnownArguments::of(self.schema, holder);
                for name in unexpected.iter().take(MAX_MISTAKES) {
                    self.add(error, explain_unknown(name, known.names()));
                }
                return;
            }
            Kind::Required { property } => {
                let schema = property.as_str().and_then(|name| self.holder(error)?.get("properties")?.get(name));
                let about = schema.and_then(|schema| described(self.schema, schema));
                format!("{property} is required{}", about.map(|about| format!(": {about}")).unwrap_or_default())
            }
            Kind::Type { kind } => wrong_type(types_in(kind), value),
            Kind::Enum { options } => one_of(options.as_array().map_or(&[][..], Vec::as_slice), value),
            Kind::Constant { expected_value } => one_of(std::slice::from_ref(&**expected_value), value),
            Kind::Minimum { limit } => format!("expected at least {limit}, got {}", got(value)),
            Kind::Maximum { limit } => format!("expected at most {limit}, got {}", got(value)),
            Kind::ExclusiveMinimum { limit } => format!("expected more than {limit}, got {}", got(value)),
            Kind::ExclusiveMaximum { limit } => format!("expected less than {limit}, got {}", got(value)),
            Kind::MinLength { limit } => format!("expected at least {limit} characters, got {}", got(value)),
            Kind::MaxLength { limit } => {
                let length = value.as_str().map_or(0, |text| text.chars().count());
                format!("expected at most {limit} characters, got {length}")
            }
            Kind::MinItems { limit } => format!("expected at least {}, got {}", items(*limit), length(value)),
            Kind::MaxItems { limit } => format!("expected at most {}, got {}", items(*limit), length(value)),
            Kind::Pattern { pattern } => format!("expected a text that matches {pattern}, got {}", got(value)),
            Kind::Format { format } => format!("expected a text in the format {format:?}, got {}", got(value)),
            _ => error.to_string(),
        };
        self.add(error, shortened(message));
    }

    /// The part of the schema that has the keyword that failed.
    fn holder(&self, error: &ValidationError<'_>) -> Option<&'s Value> {
        let (holder, _) = error.schema_path().as_str().rsplit_once('/')?;
        self.schema.pointer(holder)
    }
}

fn items(count: u64) -> String {
    format!("{count} item{}", if count == 1 { "" } else { "s" })
}

fn length(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len)
}

/// A message may quote a value of a megabyte.
pub(super) fn shortened(text: String) -> String {
    const MAX: usize = 8_000;
    cut_chars(&text, MAX, " …").into_owned()
}
