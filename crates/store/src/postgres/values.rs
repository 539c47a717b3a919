//! Values on their way to PostgreSQL and back.

use super::meaning::meaning;
use crate::body::{Row, Value};
use crate::error::Error;
use tokio_postgres::Statement;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};

/// The values that a statement names; those beyond are not sent.
pub(super) fn parameters<'a>(
    statement: &Statement,
    values: &'a [Value],
) -> Vec<&'a (dyn ToSql + Sync)> {
    let values = values.iter().take(statement.params().len());
    values
        .map(|value| -> &(dyn ToSql + Sync) { value })
        .collect()
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *kind == Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
            Self::Int(number) => <i64 as ToSql>::to_sql_checked(number, kind, out),
            // The one character that PostgreSQL cannot keep.
            Self::Text(text) if text.contains('\0') => {
                text.replace('\0', "\u{fffd}").to_sql_checked(kind, out)
            }
            Self::Text(text) => <String as ToSql>::to_sql_checked(text, kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

pub(super) fn read(row: &tokio_postgres::Row) -> Result<Row, Error> {
    let value = |at: usize, kind: &Type| {
        Ok::<_, tokio_postgres::Error>(match *kind {
            Type::INT8 => row.try_get::<_, Option<i64>>(at)?.into(),
            Type::INT4 => row.try_get::<_, Option<i32>>(at)?.map(i64::from).into(),
            _ => row.try_get::<_, Option<String>>(at)?.into(),
        })
    };
    let columns = row.columns().iter().enumerate();
    let values = columns.map(|(at, column)| value(at, column.type_()));
    values
        .collect::<Result<_, _>>()
        .map(Row::new)
        .map_err(meaning)
}
