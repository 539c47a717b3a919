//! Events as they go over the wire, rendered once for all who read them.

use api::EventView;
use axum::extract::ws::Utf8Bytes;
use bytes::Bytes;
use std::sync::Arc;

/// Events of one project in a row, as frames and as texts that share their bytes.
pub(super) struct Piece {
    frames: Bytes,
    events: Vec<Rendered>,
}

/// Where one event is within the frames.
struct Rendered {
    id: u64,
    begins: usize,
    text: Utf8Bytes,
}

impl Piece {
    /// Renders events, which come in the order of their ids.
    pub(super) fn render(events: &[EventView]) -> Self {
        let mut frames = Vec::new();
        let mut places = Vec::with_capacity(events.len());
        for event in events {
            let begins = frames.len();
            super::frame(&mut frames, Some(event.id), &event.kind, event);
            places.push((event.id, begins..frames.len()));
        }
        let frames = Bytes::from(frames);
        let events = places.into_iter().filter_map(|(id, place)| {
            let begins = place.start;
            let text = text(&frames.slice(place))?;
            Some(Rendered { id, begins, text })
        });
        Self {
            events: events.collect(),
            frames: frames.clone(),
        }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.frames.len() + self.events.len() * size_of::<Rendered>()
    }
}

/// The data of one frame.
fn text(frame: &Bytes) -> Option<Utf8Bytes> {
    const DATA: &[u8] = b"\ndata: ";
    let at = frame.windows(DATA.len()).position(|part| part == DATA)?;
    let data = frame.slice(at + DATA.len()..frame.len().saturating_sub(2));
    Utf8Bytes::try_from(data).ok()
}

/// What one stream is told: a piece, from one of its events on.
pub(crate) struct Told {
    piece: Arc<Piece>,
    from: usize,
}

impl Told {
    /// The events of the piece after that id; none when there are none.
    pub(super) fn after(piece: &Arc<Piece>, after: u64) -> Option<Self> {
        let from = piece.events.partition_point(|event| event.id <= after);
        (from < piece.events.len()).then(|| Self {
            piece: Arc::clone(piece),
            from,
        })
    }

    /// As server-sent events, to be written at once.
    pub(crate) fn frames(&self) -> Bytes {
        let begins = self.events().first().map_or(0, |event| event.begins);
        self.piece.frames.slice(begins..)
    }

    /// As JSON, one text per event.
    pub(crate) fn texts(&self) -> impl Iterator<Item = Utf8Bytes> {
        self.events().iter().map(|event| event.text.clone())
    }

    fn events(&self) -> &[Rendered] {
        self.piece.events.get(self.from..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn event(id: u64, message: &str) -> EventView {
        EventView {
            id,
            at: model::time::Timestamp::from_millis(0).into(),
            project: "default".to_owned(),
            what: "cluster.changed".to_owned(),
            kind: "cluster".to_owned(),
            object: "edge".to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn a_reader_in_the_middle_is_told_the_rest() {
        let piece = Arc::new(Piece::render(&[
            event(3, "a\ndata: b"),
            event(5, "grün"),
            event(9, "c"),
        ]));
        let told = Told::after(&piece, 3).unwrap();
        let frames = told.frames();
        expect![[r#"
            id: 5
            event: cluster
            data: {"id":5,"at":"1970-01-01T00:00:00Z","project":"default","what":"cluster.changed","kind":"cluster","object":"edge","message":"grün"}

            id: 9
            event: cluster
            data: {"id":9,"at":"1970-01-01T00:00:00Z","project":"default","what":"cluster.changed","kind":"cluster","object":"edge","message":"c"}

        "#]]
        .assert_eq(std::str::from_utf8(&frames).unwrap());
        let whole = Told::after(&piece, 0).unwrap();
        let read: Vec<EventView> = whole
            .texts()
            .map(|text| serde_json::from_str(&text).unwrap())
            .collect();
        assert_eq!(
            read,
            [event(3, "a\ndata: b"), event(5, "grün"), event(9, "c")]
        );
        assert!(Told::after(&piece, 9).is_none());
    }

    #[test]
    fn nothing_is_copied_for_one_reader_more() {
        let piece = Arc::new(Piece::render(&[event(1, "a"), event(2, "b")]));
        let (one, other) = (
            Told::after(&piece, 0).unwrap(),
            Told::after(&piece, 1).unwrap(),
        );
        let end = |bytes: &Bytes| bytes.as_ptr_range().end;
        assert_eq!(end(&one.frames()), end(&other.frames()));
    }
}
