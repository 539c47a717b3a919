//! Edits in the middle of a roll: the pool ends with the size that was declared last.

use super::{LARGE, Life, SAID, Said};
use expect_test::expect;

#[test]
fn a_pool_that_grows_while_it_rolls_has_its_size() {
    let mut life = Life::of(SAID);
    life.apply(LARGE);
    life.until(|life| life.told.contains("join edge-muscle-03"));
    life.told.clear();
    life.apply(Said {
        compute: 4,
        ..LARGE
    });
    life.settle();
    life.told(&expect![[r#"
          join edge-muscle-04
          join edge-muscle-05
        edge-muscle-03 in place of edge-muscle-01
          drain edge-muscle-01
        edge-muscle-06 to come, made as pool muscle now says
          delete edge-muscle-01
          join edge-muscle-06
        edge-muscle-06 in place of edge-muscle-02
          drain edge-muscle-02
          delete edge-muscle-02
        now edge-brain-01 edge-muscle-03 edge-muscle-04 edge-muscle-05 edge-muscle-06
    "#]]);
}

#[test]
fn a_pool_that_shrinks_while_it_rolls_has_its_size() {
    let said = Said {
        compute: 3,
        more: "replace: true, surge: 2",
        ..SAID
    };
    let mut life = Life::of(said);
    let large = Said {
        kind: "large",
        ..said
    };
    life.apply(large);
    life.until(|life| life.told.contains("join edge-muscle-05"));
    life.told.clear();
    life.apply(Said {
        compute: 1,
        ..large
    });
    life.settle();
    life.told(&expect![[r#"
          drain edge-muscle-05
          delete edge-muscle-05
          drain edge-muscle-01
          delete edge-muscle-01
          drain edge-muscle-02
          delete edge-muscle-02
          drain edge-muscle-03
          delete edge-muscle-03
        now edge-brain-01 edge-muscle-04
    "#]]);
    assert!(life.desired.unwrap().rolls.is_empty());
}
