//! Merging of counts, field by field.

/// Implements `merge`, which adds the counts of another value to this one. A field is summed (`sum`), keeps its
/// larger value (`max`) or takes the later value (`last`); a field with a `merge` of its own is listed under
/// `merge`. A field that is missing from the list does not compile.
macro_rules! merge {
    ($name:ident { $($how:ident: $($field:ident),+;)+ }) => {
        impl $name {
            /// Adds the counts of `later`.
            pub(crate) fn merge(&mut self, later: &$name) {
                let $name { $($($field),+),+ } = *later;
                $($($crate::merge::merge!(@$how self.$field, $field);)+)+
            }
        }
    };
    (@sum $own:expr, $later:expr) => { $own += $later };
    (@max $own:expr, $later:expr) => { $own = $own.max($later) };
    (@last $own:expr, $later:expr) => { $own = $later };
    (@merge $own:expr, $later:expr) => { $own.merge(&$later) };
}

pub(crate) use merge;
