//! Environments: copies of a product, and what is done to them.
//!
//! Scripts are asked before anything is stored, so that what they say no to changes nothing.

mod acting;
mod body;
mod changing;
mod deliveries;
mod importing;
mod notify;
mod output;
mod reading;
mod settings;
mod sources;

use model::access::Role::{Operator, User, Viewer};
use utoipa_axum::routes;

use super::{PROJECT, Routes};
use crate::access::Need::Within;

/// Routes about environments. Scripts take their time, so all of these may.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .needs(Within(Viewer), routes!(settings::show))
        .needs(Within(Operator), routes!(settings::put))
        .needs(Within(Viewer), routes!(settings::defaults))
        .needs(Within(Viewer), routes!(settings::keys))
        .needs(Within(Viewer), routes!(reading::list))
        .needs(Within(User), routes!(changing::create))
        .needs(Within(Operator), routes!(importing::import))
        .needs(Within(Viewer), routes!(reading::show))
        .needs(Within(User), routes!(changing::change))
        .needs(Within(User), routes!(changing::put))
        .needs(Within(Operator), routes!(acting::delete))
        .needs(Within(User), routes!(acting::archive))
        .needs(Within(User), routes!(acting::restore))
        .needs(Within(User), routes!(acting::cleanup))
        .needs(Within(User), routes!(acting::cancel))
        .needs(Within(User), routes!(acting::redeploy))
        .needs(Within(User), routes!(changing::clone))
        .needs(Within(User), routes!(changing::extend))
        .needs(Within(User), routes!(acting::look))
        .needs(Within(Viewer), routes!(reading::configuration))
        .needs(Within(Viewer), routes!(reading::actions))
        .needs(Within(Viewer), routes!(reading::action))
        .needs(Within(Viewer), routes!(output::log))
        .needs(Within(Viewer), routes!(reading::changes))
        .needs(Within(Viewer), routes!(deliveries::list))
        .needs(Within(Operator), routes!(deliveries::test))
        .needs(Within(Viewer), routes!(deliveries::show))
        .needs(Within(Operator), routes!(deliveries::retry))
        .below(PROJECT)
}
