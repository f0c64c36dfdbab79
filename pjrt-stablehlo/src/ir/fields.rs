//! The fields of StableHLO's structured attributes, in the order of their encodings.

use super::{
    ConvDimensionNumbers, DotAlgorithm, DotDimensionNumbers, GatherDimensionNumbers, Ints,
    ScatterDimensionNumbers, Type,
};

/// Reads the fields of a structured attribute in order.
pub(crate) trait FieldReader {
    type Error;
    fn integer(&mut self, name: &'static str) -> Result<i64, Self::Error>;
    fn integers(&mut self, name: &'static str) -> Result<Ints, Self::Error>;
    fn ty(&mut self, name: &'static str) -> Result<Type, Self::Error>;
    fn boolean(&mut self, name: &'static str) -> Result<bool, Self::Error>;
}

/// Writes the fields of a structured attribute in order.
pub(crate) trait FieldWriter {
    type Error;
    fn integer(&mut self, name: &'static str, value: &i64) -> Result<(), Self::Error>;
    fn integers(&mut self, name: &'static str, values: &Ints) -> Result<(), Self::Error>;
    fn ty(&mut self, name: &'static str, ty: &Type) -> Result<(), Self::Error>;
    fn boolean(&mut self, name: &'static str, value: &bool) -> Result<(), Self::Error>;
}

/// A structured attribute.
pub(crate) trait Fields: Sized {
    /// The names of the fields.
    const NAMES: &'static [&'static str];
    fn read_fields<R: FieldReader>(reader: &mut R) -> Result<Self, R::Error>;
    fn write_fields<W: FieldWriter>(&self, writer: &mut W) -> Result<(), W::Error>;
}

macro_rules! fields {
    ($($attribute:ident { $($field:ident: $kind:ident,)* })*) => {
        $(
            impl Fields for $attribute {
                const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

                fn read_fields<R: FieldReader>(reader: &mut R) -> Result<Self, R::Error> {
                    Ok($attribute { $($field: reader.$kind(stringify!($field))?,)* })
                }

                fn write_fields<W: FieldWriter>(&self, writer: &mut W) -> Result<(), W::Error> {
                    $(writer.$kind(stringify!($field), &self.$field)?;)*
                    Ok(())
                }
            }
        )*
    };
}

fields! {
    ConvDimensionNumbers {
        input_batch_dimension: integer,
        input_feature_dimension: integer,
        input_spatial_dimensions: integers,
        kernel_input_feature_dimension: integer,
        kernel_output_feature_dimension: integer,
        kernel_spatial_dimensions: integers,
        output_batch_dimension: integer,
        output_feature_dimension: integer,
        output_spatial_dimensions: integers,
    }
    DotDimensionNumbers {
        lhs_batching_dimensions: integers,
        rhs_batching_dimensions: integers,
        lhs_contracting_dimensions: integers,
        rhs_contracting_dimensions: integers,
    }
    DotAlgorithm {
        lhs_precision_type: ty,
        rhs_precision_type: ty,
        accumulation_type: ty,
        lhs_component_count: integer,
        rhs_component_count: integer,
        num_primitive_operations: integer,
        allow_imprecise_accumulation: boolean,
    }
    GatherDimensionNumbers {
        offset_dims: integers,
        collapsed_slice_dims: integers,
        operand_batching_dims: integers,
        start_indices_batching_dims: integers,
        start_index_map: integers,
        index_vector_dim: integer,
    }
    ScatterDimensionNumbers {
        update_window_dims: integers,
        inserted_window_dims: integers,
        input_batching_dims: integers,
        scatter_indices_batching_dims: integers,
        scatter_dims_to_operand_dims: integers,
        index_vector_dim: integer,
    }
}
