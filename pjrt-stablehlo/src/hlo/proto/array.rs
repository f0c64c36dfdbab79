//! Shapes and constants.

use prost::Message;

/// `ShapeProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Shape {
    #[prost(int32, tag = "2")]
    pub(in crate::hlo) element_type: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(in crate::hlo) dimensions: Vec<i64>,
    #[prost(message, repeated, tag = "4")]
    pub(in crate::hlo) tuple_shapes: Vec<Shape>,
    #[prost(message, optional, tag = "5")]
    pub(in crate::hlo) layout: Option<Layout>,
    #[prost(bool, repeated, tag = "6")]
    pub(in crate::hlo) is_dynamic_dimension: Vec<bool>,
}

/// `LayoutProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Layout {
    #[prost(int64, repeated, tag = "1")]
    pub(in crate::hlo) minor_to_major: Vec<i64>,
}

/// `LiteralProto`. Elements lie in the order of the shape's layout; those narrower than a byte take one each.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Literal {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hlo) shape: Option<Shape>,
    #[prost(bool, repeated, tag = "2")]
    pub(in crate::hlo) preds: Vec<bool>,
    #[prost(bytes = "vec", tag = "3")]
    pub(in crate::hlo) u8s: Vec<u8>,
    #[prost(int32, repeated, tag = "4")]
    pub(in crate::hlo) s32s: Vec<i32>,
    #[prost(int64, repeated, tag = "5")]
    pub(in crate::hlo) s64s: Vec<i64>,
    #[prost(uint32, repeated, tag = "6")]
    pub(in crate::hlo) u32s: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub(in crate::hlo) u64s: Vec<u64>,
    #[prost(float, repeated, tag = "8")]
    pub(in crate::hlo) f32s: Vec<f32>,
    #[prost(double, repeated, tag = "9")]
    pub(in crate::hlo) f64s: Vec<f64>,
    #[prost(message, repeated, tag = "10")]
    pub(in crate::hlo) tuple_literals: Vec<Literal>,
    #[prost(bytes = "vec", tag = "11")]
    pub(in crate::hlo) f16s: Vec<u8>,
    #[prost(float, repeated, tag = "12")]
    pub(in crate::hlo) c64s: Vec<f32>,
    #[prost(bytes = "vec", tag = "13")]
    pub(in crate::hlo) bf16s: Vec<u8>,
    #[prost(bytes = "vec", tag = "15")]
    pub(in crate::hlo) s8s: Vec<u8>,
    #[prost(bytes = "vec", tag = "16")]
    pub(in crate::hlo) u16s: Vec<u8>,
    #[prost(bytes = "vec", tag = "17")]
    pub(in crate::hlo) s16s: Vec<u8>,
    #[prost(double, repeated, tag = "18")]
    pub(in crate::hlo) c128s: Vec<f64>,
    #[prost(bytes = "vec", tag = "19")]
    pub(in crate::hlo) f8e5m2s: Vec<u8>,
    #[prost(bytes = "vec", tag = "20")]
    pub(in crate::hlo) f8e4m3fns: Vec<u8>,
    #[prost(bytes = "vec", tag = "21")]
    pub(in crate::hlo) s4s: Vec<u8>,
    #[prost(bytes = "vec", tag = "22")]
    pub(in crate::hlo) u4s: Vec<u8>,
    #[prost(bytes = "vec", tag = "23")]
    pub(in crate::hlo) f8e4m3b11fnuzs: Vec<u8>,
    #[prost(bytes = "vec", tag = "24")]
    pub(in crate::hlo) f8e5m2fnuzs: Vec<u8>,
    #[prost(bytes = "vec", tag = "25")]
    pub(in crate::hlo) f8e4m3fnuzs: Vec<u8>,
    #[prost(bytes = "vec", tag = "26")]
    pub(in crate::hlo) s2s: Vec<u8>,
    #[prost(bytes = "vec", tag = "27")]
    pub(in crate::hlo) u2s: Vec<u8>,
    #[prost(bytes = "vec", tag = "28")]
    pub(in crate::hlo) f8e4m3s: Vec<u8>,
    #[prost(bytes = "vec", tag = "29")]
    pub(in crate::hlo) f8e3m4s: Vec<u8>,
    #[prost(bytes = "vec", tag = "30")]
    pub(in crate::hlo) s1s: Vec<u8>,
    #[prost(bytes = "vec", tag = "31")]
    pub(in crate::hlo) u1s: Vec<u8>,
    #[prost(bytes = "vec", tag = "32")]
    pub(in crate::hlo) f4e2m1fns: Vec<u8>,
    #[prost(bytes = "vec", tag = "33")]
    pub(in crate::hlo) f8e8m0fnus: Vec<u8>,
    #[prost(bytes = "vec", tag = "35")]
    pub(in crate::hlo) f6e3m2fns: Vec<u8>,
    #[prost(bytes = "vec", tag = "36")]
    pub(in crate::hlo) f6e2m3fns: Vec<u8>,
}
