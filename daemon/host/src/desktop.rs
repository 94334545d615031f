//! Notifications of the desktop, over the D-Bus session bus.

use std::collections::HashMap;

use zbus::connection::Builder;
use zbus::zvariant::Value;

/// The name of the service, and of its interface.
const NOTIFICATIONS: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

/// Shows a notification on the desktop whose session bus has this address.
///
/// # Errors
/// The bus cannot be reached, or nothing on it shows notifications.
pub async fn notify(bus: &str, title: &str, text: &str) -> Result<(), zbus::Error> {
    let connection = Builder::address(bus)?.build().await?;
    let desktop = zbus::Proxy::new(&connection, NOTIFICATIONS, PATH, NOTIFICATIONS).await?;
    let capabilities: Vec<String> = desktop.call("GetCapabilities", &()).await?;
    // Text of a tool must not become markup.
    let body = match capabilities.iter().any(|capability| capability == "body-markup") {
        true => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
        false => text.to_owned(),
    };
    let (replaces, icon, actions, expires) = (0u32, "", Vec::<&str>::new(), -1i32);
    let hints = HashMap::from([("desktop-entry", Value::from("toold"))]);
    let sent = ("toold", replaces, icon, title, body.as_str(), actions, hints, expires);
    let _id: u32 = desktop.call("Notify", &sent).await?;
    Ok(())
}
