//! The rules of types: bounds and quantization parameters.

use crate::ir::{DYNAMIC, ElementType, QuantizedType, TensorType, Type};

/// Returns the problem of an invalid type.
pub(super) fn problem(ty: &Type) -> Option<String> {
    match ty {
        Type::Tensor(tensor) | Type::Buffer(tensor) => tensor_problem(tensor),
        Type::Future(types) if types.is_empty() => {
            Some(format!("{ty}: expected a future of at least one type"))
        }
        Type::Tuple(types) | Type::Future(types) => types.iter().find_map(problem),
        _ => None,
    }
}

fn tensor_problem(tensor: &TensorType) -> Option<String> {
    let (dims, bounds) = (tensor.dims(), tensor.bounds());
    let count = tensor.num_elements().is_some_and(|count| i64::try_from(count).is_ok());
    if !tensor.is_dynamic() && !count {
        return Some(format!("the type {tensor} has more than {} elements", i64::MAX));
    }
    if !bounds.is_empty() && bounds.len() != dims.len() {
        return Some(format!(
            "{tensor}: expected a bound for each of {} dimensions, found {}",
            dims.len(),
            bounds.len()
        ));
    }
    let bounded = |(&size, &bound): (&i64, &i64)| bound != DYNAMIC && (size != DYNAMIC || bound < 0);
    if dims.iter().zip(bounds).any(bounded) {
        return Some(format!("{tensor}: expected nonnegative bounds, of dynamic dimensions only"));
    }
    let quantization = tensor.quantization()?;
    if let Some(problem) = quantization_problem(quantization) {
        return Some(format!("{tensor} {problem}"));
    }
    if let Some(blocks) = &quantization.blocks {
        let message = || format!("{tensor}: expected a grid of blocks that exactly covers the tensor");
        return (!blocks.fill(dims)).then(message);
    }
    let axis = quantization.axis? as usize;
    if axis >= dims.len() {
        return Some(format!(
            "{tensor} (C12 of quantized types): expected a quantized dimension below the rank {}, found {axis}",
            dims.len()
        ));
    }
    let scales = quantization.scales.len() as i64;
    if dims[axis] != DYNAMIC && dims[axis] != scales {
        return Some(format!(
            "{tensor} (C13 of quantized types): expected {} scales, found {scales}",
            dims[axis]
        ));
    }
    None
}

/// Returns the violated constraint of the specification's section "Quantized element types". C1, C2, C4 and C8
/// constrain types of storage limits and zero points, which programs do not contain.
fn quantization_problem(quantization: &QuantizedType) -> Option<String> {
    let (least, greatest) = QuantizedType::full_range(quantization.storage_type);
    let (min, max) = (quantization.storage_min, quantization.storage_max);
    let storage = quantization.storage_type;
    let is_storage = storage.is_integer() && storage != ElementType::Index && storage.bits() <= 32;
    let zero_points_fit = quantization.zero_points.iter().all(|zero| (min..=max).contains(zero));
    let rules = [
        (
            is_storage && quantization.expressed_type.is_float(),
            ": expected integers of at most 32 bits that represent floats",
        ),
        (
            least <= min && min < max && max <= greatest,
            "(C3 of quantized types): expected storage limits in the storage type",
        ),
        (
            quantization.scales.iter().all(|&scale| scale > 0.0),
            "(C5 of quantized types): expected positive scales",
        ),
        (
            quantization.scales.iter().all(|scale| scale.is_finite()),
            "(C6 of quantized types): expected finite scales",
        ),
        (
            quantization.scales.iter().all(|&scale| is_number_of(quantization.expressed_type, scale)),
            ": expected scales in the range of the expressed type",
        ),
        (zero_points_fit, "(C7 of quantized types): expected zero points between the storage limits"),
        (
            quantization.scales.len() == quantization.zero_points.len(),
            "(C9 of quantized types): expected as many zero points as scales",
        ),
        (
            quantization.axis.is_some() || quantization.blocks.is_some() || quantization.scales.len() == 1,
            "(C10 of quantized types): expected a single scale",
        ),
    ];
    rules.into_iter().find(|(holds, _)| !holds).map(|(_, problem)| problem.to_owned())
}

/// Returns `true` if a positive number lies between the smallest normal and the greatest finite number of a float type.
fn is_number_of(ty: ElementType, number: f64) -> bool {
    match ty {
        ElementType::F16 => (6.103515625e-5..=65504.0).contains(&number),
        ElementType::BF16 => {
            (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::from_bits(0x7f7f_0000))).contains(&number)
        }
        ElementType::F32 => (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&number),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_unknown_sizes() {
        let bounded = |size, bounds: &[i64]| {
            let ty = TensorType::from_parts([size].into(), bounds.into(), ElementType::F32, None, None);
            problem(&ty.into()).is_some()
        };
        assert!(!bounded(DYNAMIC, &[4]));
        assert!(!bounded(4, &[DYNAMIC]));
        assert!(bounded(4, &[4]));
        assert!(bounded(DYNAMIC, &[-1]));
        assert!(bounded(DYNAMIC, &[4, 4]));
    }

    #[test]
    fn quantized_values_are_stored_in_at_most_32_bits() {
        let stored = |storage_type| {
            let (storage_min, storage_max) = QuantizedType::full_range(storage_type);
            let quantized = QuantizedType {
                storage_type,
                expressed_type: ElementType::F32,
                storage_min,
                storage_max,
                scales: [0.5].into(),
                zero_points: [0].into(),
                axis: None,
                blocks: None,
            };
            quantization_problem(&quantized)
        };
        for fits in [ElementType::I2, ElementType::Ui8, ElementType::I32, ElementType::Ui32] {
            assert_eq!(stored(fits), None, "{fits}");
        }
        for refused in [ElementType::I64, ElementType::Ui64, ElementType::F64] {
            assert!(stored(refused).is_some(), "{refused}");
        }
    }
}
