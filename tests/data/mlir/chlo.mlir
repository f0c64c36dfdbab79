// CHLO operations that have attributes.
module {
  func.func @main(%a: tensor<3x8xf32>, %b: tensor<8xf32>, %n: tensor<2xi32>) -> tensor<3x8xi1> {
    %0:2 = chlo.top_k(%a, k = 2) : tensor<3x8xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
    %1 = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 1>} : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
    %2 = "chlo.broadcast_compare"(%1, %a) {
      compare_type = #chlo<comparison_type TOTALORDER>, comparison_direction = #chlo<comparison_direction GE>
    } : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xi1>
    %3 = "chlo.constant_like"(%a) {value = 3.5 : f32} : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %4 = "chlo.erf"(%3) : (tensor<3x8xf32>) -> tensor<3x8xf32>
    func.return %2 : tensor<3x8xi1>
  }
}
