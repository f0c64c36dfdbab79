module @add {
  func.func public @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %sum = stablehlo.add %x, %y : tensor<2x3xf32>
    return %sum : tensor<2x3xf32>
  }
}
