//! From what is stored of environments to what the contract shows.

use api::{
    ActionDetail, ActionView, BusyView, CancelledView, CheckedView, ConfigurationView,
    EnvironmentAccepted, EnvironmentView, ExitView, ImportOutcome, ImportedView, OutputLineView,
    OutputStream, StatusChangeView,
};
use axum::Json;
use axum::http::{HeaderName, StatusCode, header};
use model::environment::EnvironmentName;
use model::environment::status::Status;
use model::name::Name;
use plan::environment::Exit;
use store::{
    About, ActionRow, Busy, CalledOff, Checked, Effective, EnvironmentAnswer, EnvironmentChange,
    EnvironmentRow, OutputLine, TakeOutcome, TookOver,
};

/// One environment.
pub(crate) fn environment(row: EnvironmentRow) -> EnvironmentView {
    let exits = row.standing().exits().into_iter().map(exit).collect();
    let EnvironmentRow {
        id,
        project,
        name,
        generation,
        status,
        since,
        failed,
        called_off,
        busy,
        about,
        edits,
        links,
        checked,
        created_at,
        updated_at,
        archived_at,
        used_at,
        asleep,
        origin,
    } = row;
    let About {
        owner,
        labels,
        notes,
        protected,
        expires_at,
    } = about;
    EnvironmentView {
        id: id.to_string(),
        project: project.into(),
        name: name.into(),
        generation,
        status: status.into(),
        since: since.into(),
        failed: failed && called_off.is_none(),
        cancelled: called_off.map(cancelled),
        busy: busy.map(under_way),
        exits,
        owner,
        labels,
        notes,
        protected,
        expires_at: expires_at.map(Into::into),
        edits: edits.into(),
        links: links.into_iter().map(Into::into).collect(),
        checked: checked.map(|checked| {
            let Checked {
                at,
                seen,
                unseen_since,
                said,
            } = checked;
            CheckedView {
                at: at.into(),
                seen: seen.filter(|_| unseen_since.is_none()).map(Into::into),
                unseen_since: unseen_since.map(Into::into),
                said,
            }
        }),
        created_at: created_at.into(),
        updated_at: updated_at.into(),
        archived_at: archived_at.map(Into::into),
        used_at: used_at.into(),
        asleep: asleep
            .filter(|_| matches!(status, Status::Archived | Status::ArchivePending))
            .map(Into::into),
        origin: origin.map(Into::into),
    }
}

fn cancelled(called_off: CalledOff) -> CancelledView {
    let CalledOff {
        action,
        deed,
        by,
        at,
    } = called_off;
    CancelledView {
        action: action.to_string(),
        kind: deed.into(),
        by,
        at: at.into(),
    }
}

fn under_way(busy: Busy) -> BusyView {
    let Busy {
        action,
        deed,
        state,
        waits,
        cancel,
    } = busy;
    BusyView {
        action: action.to_string(),
        kind: deed.into(),
        state: state.into(),
        waits_for: waits,
        cancelled: cancel,
    }
}

fn exit(exit: Exit) -> ExitView {
    let (verb, force) = match exit {
        Exit::Cancel => ("cancel", false),
        Exit::Do(deed) => (deed.as_str(), false),
        Exit::Force(deed) => (deed.as_str(), true),
    };
    ExitView {
        verb: verb.to_owned(),
        force,
    }
}

/// A configuration as it counts in the end.
pub(crate) fn configuration(effective: Effective) -> ConfigurationView {
    let Effective {
        application,
        deployment,
    } = effective;
    ConfigurationView {
        application: application.into_iter().map(Into::into).collect(),
        deployment: deployment.into_iter().map(Into::into).collect(),
    }
}

/// An action without what it was given.
pub(crate) fn action(row: ActionRow) -> ActionView {
    action_detail(row).head
}

/// An action with all that it was given.
pub(crate) fn action_detail(row: ActionRow) -> ActionDetail {
    let ActionRow {
        id,
        project: _,
        environment: _,
        name,
        deed,
        state,
        cancel,
        cancelled_by,
        cancelled_at,
        author,
        forced,
        created_at,
        started_at,
        deadline,
        ended_at,
        exit,
        error,
        settings: _,
        edits,
        effective,
        taken,
    } = row;
    let head = ActionView {
        id: id.to_string(),
        environment: name.into(),
        kind: deed.into(),
        state: state.into(),
        cancelled: cancel,
        cancelled_by,
        cancelled_at: cancelled_at.map(Into::into),
        author,
        forced,
        exit,
        error,
        created_at: created_at.into(),
        started_at: started_at.map(Into::into),
        deadline: deadline.map(Into::into),
        ended_at: ended_at.map(Into::into),
        imported: taken,
    };
    ActionDetail {
        head,
        edits: edits.into(),
        configuration: configuration(effective),
    }
}

/// A line of output.
pub(crate) fn line(line: OutputLine) -> OutputLineView {
    let OutputLine {
        seq,
        stream,
        line: _,
        at,
        text,
    } = line;
    let stream = match stream {
        store::OutputStream::Out => OutputStream::Stdout,
        store::OutputStream::Err => OutputStream::Stderr,
    };
    OutputLineView {
        seq,
        stream,
        at: at.into(),
        text,
    }
}

/// That an environment became another.
pub(crate) fn status_change(change: EnvironmentChange) -> StatusChangeView {
    let EnvironmentChange {
        id,
        at,
        was,
        became,
        because,
    } = change;
    StatusChangeView {
        id,
        at: at.into(),
        was: was.map(Into::into),
        became: became.map(Into::into),
        because,
    }
}

/// What became of an environment that was to be taken over.
pub(crate) fn took_over(took: TookOver) -> ImportedView {
    let TookOver {
        name,
        outcome,
        actions,
    } = took;
    let (outcome, because) = match outcome {
        TakeOutcome::Taken => (ImportOutcome::Taken, None),
        TakeOutcome::Known => (
            ImportOutcome::Known,
            Some("it was taken over before".to_owned()),
        ),
        TakeOutcome::Exists { status } => (
            ImportOutcome::Exists,
            Some(format!("there is another of that name, which is {status}")),
        ),
        TakeOutcome::Gone => (
            ImportOutcome::Gone,
            Some("it was taken over before, and was removed since".to_owned()),
        ),
        TakeOutcome::Quota { limit } => (
            ImportOutcome::OverQuota,
            Some(format!("the project may have {limit} environments")),
        ),
    };
    ImportedView {
        name: name.into(),
        outcome,
        actions,
        because,
    }
}

/// An answer that says what to follow.
pub(super) type Accepted = (
    StatusCode,
    [(HeaderName, String); 1],
    Json<EnvironmentAccepted>,
);

/// Says what was done, and where what is under way is followed.
pub(super) fn accepted(project: &Name, answer: EnvironmentAnswer) -> Accepted {
    let EnvironmentAnswer {
        name,
        generation,
        action,
    } = answer;
    let place = path(project, &name);
    let follow = match &action {
        Some(action) => format!("{place}/actions/{}", action.id),
        None => place,
    };
    let view = EnvironmentAccepted {
        name: name.to_string(),
        generation,
        action: action.as_ref().map(|action| action.id.to_string()),
        kind: action.as_ref().map(|action| action.deed.into()),
        state: action.map(|action| action.state.into()),
    };
    (
        StatusCode::ACCEPTED,
        [(header::LOCATION, follow)],
        Json(view),
    )
}

fn path(project: &Name, name: &EnvironmentName) -> String {
    format!("/api/v1/projects/{project}/environments/{name}")
}
