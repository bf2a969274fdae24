//! The macro that turns the entries of a section into its part of the summary.

/// Declares a section of the summary: an entry for each field.
///
/// ```text
/// section! {
///     /// Data packets.
///     pub struct Packets read from run: RunData<'_>;
///
///     /// Arrivals with a PSN above ePSN.
///     out_of_order: u64 = run.outcome.data.out_of_order => { unit: Unit::Packets, better: Better::Less };
/// }
/// ```
///
/// The doc comment of an entry is the meaning of the metric. The braces hold fields of [`Entry`](super::Entry) that differ
/// from its defaults; an entry without braces is no metric. An entry whose type is a section, or a map of sections, has the
/// metrics of that section. Without `read from` the fields are public input, and no entry has a `=`.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        pub struct $Section:ident read from $run:ident: $Source:ty;
        $(
            $(#[doc = $meaning:literal])+
            $(#[serde($serde:meta)])?
            $key:ident: $Type:ty = $read:expr $(=> { $($property:ident: $value:expr),* $(,)? })?;
        )+
    ) => {
        impl $Section {
            /// Reads every field of the section.
            pub(crate) fn read($run: $Source) -> Self {
                Self { $($key: $read),+ }
            }
        }

        section! {
            $(#[doc = $about])+
            pub struct $Section;
            $( $(#[doc = $meaning])+ $(#[serde($serde)])? $key: $Type $(=> { $($property: $value),* })?; )+
        }
    };
    (
        $(#[doc = $about:literal])+
        pub struct $Section:ident;
        $(
            $(#[doc = $meaning:literal])+
            $(#[serde($serde:meta)])?
            $key:ident: $Type:ty $(=> { $($property:ident: $value:expr),* $(,)? })?;
        )+
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default)]
        pub struct $Section {
            $( $(#[doc = $meaning])+ $(#[serde($serde)])? pub $key: $Type, )+
        }

        impl $crate::metrics::Measured for $Section {
            fn tell(of: Option<&Self>, at: $crate::metrics::Metric, ear: $crate::metrics::Ear<'_>) {
                $(
                    // Without braces the entry is no metric, and this is not used.
                    let _entry = $crate::metrics::Entry {
                        name: stringify!($key),
                        meaning: concat!($($meaning),+),
                        ..$crate::metrics::Entry::NEW
                    };
                    $(
                        let entry = $crate::metrics::Entry { $($property: $value,)* .._entry };
                        <$Type as $crate::metrics::Measured>::tell(of.map(|own| &own.$key), at.below(entry), ear);
                    )?
                )+
            }
        }
    };
}
