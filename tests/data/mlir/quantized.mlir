// Every kind of quantized type: for the whole tensor, by the index of a dimension, by block; signed and not, narrowed.
!tensor = !quant.uniform<i8:f32, 2.0:-5>
!unsigned = !quant.uniform<u8<1:254>:f32, 0.5:128>
!spelled = !quant.uniform<ui8:f32, 0.5>
!narrow = !quant.uniform<i4:bf16, 0.25>
!axis = !quant.uniform<i8<-127:127>:f32:1, {2.0:10, 3.0, 4.0:-5}>
!blocks = !quant.uniform<i8:f32:{0:2, 1:3}, {{2.0:10, 3.0:20}, {4.0:30, 5.0}}>
!equal = !quant.uniform<i8:f32:{0:2}, {{2.0}, {2.0}}>
module {
  func.func @main(
      %a: tensor<4x6x!tensor>, %b: tensor<4x6x!unsigned>, %c: tensor<4x6x!spelled>, %d: tensor<4x6x!narrow>,
      %e: tensor<2x3x!axis>, %f: tensor<4x6x!blocks>, %g: tensor<4x6x!equal>) -> tensor<4x6x!blocks> {
    %0 = stablehlo.uniform_dequantize %a : (tensor<4x6x!tensor>) -> tensor<4x6xf32>
    %1 = stablehlo.uniform_dequantize %b : (tensor<4x6x!unsigned>) -> tensor<4x6xf32>
    %2 = stablehlo.uniform_dequantize %c : (tensor<4x6x!spelled>) -> tensor<4x6xf32>
    %3 = stablehlo.uniform_dequantize %d : (tensor<4x6x!narrow>) -> tensor<4x6xbf16>
    %4 = stablehlo.uniform_dequantize %e : (tensor<2x3x!axis>) -> tensor<2x3xf32>
    %5 = stablehlo.uniform_quantize %0 : (tensor<4x6xf32>) -> tensor<4x6x!unsigned>
    %6 = "stablehlo.constant"() <{value = dense<7> : tensor<2xi8>}> : () -> tensor<2x!tensor>
    // StableHLO has no operations on blocks: functions take and give them.
    %7:2 = func.call @same(%f, %g) : (tensor<4x6x!blocks>, tensor<4x6x!equal>) -> (tensor<4x6x!blocks>, tensor<4x6x!equal>)
    func.return %7#0 : tensor<4x6x!blocks>
  }
  func.func private @same(%a: tensor<4x6x!blocks>, %b: tensor<4x6x!equal>) -> (tensor<4x6x!blocks>, tensor<4x6x!equal>) {
    func.return %a, %b : tensor<4x6x!blocks>, tensor<4x6x!equal>
  }
}
