// ----- gradient
module @jit_gradient attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16xf32>, %arg2: tensor<16x4xf32>, %arg3: tensor<4xf32>, %arg4: tensor<4x8xf32>, %arg5: tensor<4x4xf32>) -> (tensor<8x16xf32> {jax.result_info = "result[0][0]"}, tensor<16xf32> {jax.result_info = "result[0][1]"}, tensor<16x4xf32> {jax.result_info = "result[1][0]"}, tensor<4xf32> {jax.result_info = "result[1][1]"}) {
    %0 = stablehlo.dot_general %arg4, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<4x16xf32>
    %3 = stablehlo.add %0, %2 : tensor<4x16xf32>
    %4 = call @relu(%3) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %6 = stablehlo.compare GT, %3, %5, FLOAT : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xi1>
    %7 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %8 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %10 = stablehlo.add %7, %9 : tensor<4x4xf32>
    %11 = stablehlo.subtract %10, %arg5 : tensor<4x4xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %13 = stablehlo.multiply %12, %11 : tensor<4x4xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %14 = stablehlo.divide %cst_1, %cst_2 : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %16 = stablehlo.multiply %15, %13 : tensor<4x4xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.reduce(%16 init: %cst_3) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %18 = stablehlo.reshape %17 : (tensor<4xf32>) -> tensor<1x4xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%18 init: %cst_4) applies stablehlo.add across dimensions = [0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32>
    %20 = stablehlo.dot_general %16, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %21 = stablehlo.transpose %20, dims = [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32>
    %22 = stablehlo.dot_general %16, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<16x4xf32>) -> tensor<4x16xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %24 = stablehlo.select %6, %22, %23 : tensor<4x16xi1>, tensor<4x16xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = stablehlo.reduce(%24 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<4x16xf32>, tensor<f32>) -> tensor<16xf32>
    %26 = stablehlo.reshape %25 : (tensor<16xf32>) -> tensor<1x16xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.reduce(%26 init: %cst_7) applies stablehlo.add across dimensions = [0] : (tensor<1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %28 = stablehlo.dot_general %24, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
    %29 = stablehlo.transpose %28, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    return %29, %27, %21, %19 : tensor<8x16xf32>, tensor<16xf32>, tensor<16x4xf32>, tensor<4xf32>
  }
  func.func private @relu(%arg0: tensor<4x16xf32>) -> tensor<4x16xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x16xf32>
    return %1 : tensor<4x16xf32>
  }
}
// ----- sgd
module @jit_sgd attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16xf32>, %arg2: tensor<16x4xf32>, %arg3: tensor<4xf32>, %arg4: tensor<4x8xf32>, %arg5: tensor<4xi32>) -> (tensor<8x16xf32> {jax.result_info = "result[0][0]"}, tensor<16xf32> {jax.result_info = "result[0][1]"}, tensor<16x4xf32> {jax.result_info = "result[1][0]"}, tensor<4xf32> {jax.result_info = "result[1][1]"}) {
    %0 = stablehlo.dot_general %arg4, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<4x16xf32>
    %3 = stablehlo.add %0, %2 : tensor<4x16xf32>
    %4 = call @relu(%3) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %6 = stablehlo.compare GT, %3, %5, FLOAT : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xi1>
    %7 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %8 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %10 = stablehlo.add %7, %9 : tensor<4x4xf32>
    %11:2 = call @log_softmax(%10) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x1xf32>)
    %12 = stablehlo.broadcast_in_dim %arg5, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %13 = call @take_along_axis(%12) : (tensor<4x1xi32>) -> tensor<4x1x1xi32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %14 = stablehlo.negate %cst_0 : tensor<f32>
    %cst_1 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %15 = stablehlo.divide %14, %cst_1 : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %17 = call @take_along_axis_0(%13, %16) : (tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x4xf32>
    %18 = call @log_softmax_1(%11#0, %11#1, %17) : (tensor<4x4xf32>, tensor<4x1xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%18 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %20 = stablehlo.reshape %19 : (tensor<4xf32>) -> tensor<1x4xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %21 = stablehlo.reduce(%20 init: %cst_3) applies stablehlo.add across dimensions = [0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32>
    %22 = stablehlo.dot_general %18, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %23 = stablehlo.transpose %22, dims = [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32>
    %24 = stablehlo.dot_general %18, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<16x4xf32>) -> tensor<4x16xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %26 = stablehlo.select %6, %24, %25 : tensor<4x16xi1>, tensor<4x16xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.reduce(%26 init: %cst_5) applies stablehlo.add across dimensions = [0] : (tensor<4x16xf32>, tensor<f32>) -> tensor<16xf32>
    %28 = stablehlo.reshape %27 : (tensor<16xf32>) -> tensor<1x16xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %29 = stablehlo.reduce(%28 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %30 = stablehlo.dot_general %26, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
    %31 = stablehlo.transpose %30, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    %cst_7 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %33 = stablehlo.multiply %32, %31 : tensor<8x16xf32>
    %34 = stablehlo.subtract %arg0, %33 : tensor<8x16xf32>
    %cst_8 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %36 = stablehlo.multiply %35, %29 : tensor<16xf32>
    %37 = stablehlo.subtract %arg1, %36 : tensor<16xf32>
    %cst_9 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %39 = stablehlo.multiply %38, %23 : tensor<16x4xf32>
    %40 = stablehlo.subtract %arg2, %39 : tensor<16x4xf32>
    %cst_10 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %42 = stablehlo.multiply %41, %21 : tensor<4xf32>
    %43 = stablehlo.subtract %arg3, %42 : tensor<4xf32>
    return %34, %37, %40, %43 : tensor<8x16xf32>, tensor<16xf32>, tensor<16x4xf32>, tensor<4xf32>
  }
  func.func private @relu(%arg0: tensor<4x16xf32>) -> tensor<4x16xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x16xf32>
    return %1 : tensor<4x16xf32>
  }
  func.func private @log_softmax(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<4xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x4xf32>
    %6 = stablehlo.exponential %5 : tensor<4x4xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    return %6, %8 : tensor<4x4xf32>, tensor<4x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<4x1xi32>) -> tensor<4x1x1xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %1 = stablehlo.compare LT, %arg0, %0, SIGNED : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %3 = stablehlo.add %arg0, %2 : tensor<4x1xi32>
    %4 = stablehlo.select %1, %3, %arg0 : tensor<4x1xi1>, tensor<4x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<4x1xi32>) -> tensor<4x1x1xi32>
    return %5 : tensor<4x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<4x1x1xi32>, %arg1: tensor<4x1xf32>) -> tensor<4x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x4xf32>, tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<4x4xf32>, %arg1: tensor<4x1xf32>, %arg2: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.negate %arg2 : tensor<4x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.reshape %1 : (tensor<4xf32>) -> tensor<4x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<4x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<4x1xf32>, tensor<f32>) -> tensor<4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<4x4xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<4x4xf32>
    return %7 : tensor<4x4xf32>
  }
}
// ----- adam
module @jit_adam attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16xf32>, %arg2: tensor<16x4xf32>, %arg3: tensor<4xf32>, %arg4: tensor<8x16xf32>, %arg5: tensor<16xf32>, %arg6: tensor<16x4xf32>, %arg7: tensor<4xf32>, %arg8: tensor<8x16xf32>, %arg9: tensor<16xf32>, %arg10: tensor<16x4xf32>, %arg11: tensor<4xf32>, %arg12: tensor<i32>, %arg13: tensor<4x8xf32>, %arg14: tensor<4xi32>) -> (tensor<8x16xf32> {jax.result_info = "result[0][0][0]"}, tensor<16xf32> {jax.result_info = "result[0][0][1]"}, tensor<16x4xf32> {jax.result_info = "result[0][1][0]"}, tensor<4xf32> {jax.result_info = "result[0][1][1]"}, tensor<8x16xf32> {jax.result_info = "result[1][0][0]"}, tensor<16xf32> {jax.result_info = "result[1][0][1]"}, tensor<16x4xf32> {jax.result_info = "result[1][1][0]"}, tensor<4xf32> {jax.result_info = "result[1][1][1]"}, tensor<8x16xf32> {jax.result_info = "result[2][0][0]"}, tensor<16xf32> {jax.result_info = "result[2][0][1]"}, tensor<16x4xf32> {jax.result_info = "result[2][1][0]"}, tensor<4xf32> {jax.result_info = "result[2][1][1]"}, tensor<i32> {jax.result_info = "result[3]"}, tensor<f32> {jax.result_info = "result[4]"}) {
    %0 = stablehlo.dot_general %arg13, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<4x16xf32>
    %3 = stablehlo.add %0, %2 : tensor<4x16xf32>
    %4 = call @relu(%3) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %6 = stablehlo.compare GT, %3, %5, FLOAT : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xi1>
    %7 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %8 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %10 = stablehlo.add %7, %9 : tensor<4x4xf32>
    %11:3 = call @log_softmax(%10) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x1xf32>)
    %12 = stablehlo.broadcast_in_dim %arg14, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %13:2 = call @take_along_axis(%11#0, %12) : (tensor<4x4xf32>, tensor<4x1xi32>) -> (tensor<4x1xf32>, tensor<4x1x1xi32>)
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.reduce(%13#0 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %15 = stablehlo.divide %14, %cst_1 : tensor<f32>
    %16 = stablehlo.negate %15 : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %17 = stablehlo.negate %cst_2 : tensor<f32>
    %cst_3 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %18 = stablehlo.divide %17, %cst_3 : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %20 = call @take_along_axis_0(%13#1, %19) : (tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x4xf32>
    %21 = call @log_softmax_1(%11#1, %11#2, %20) : (tensor<4x4xf32>, tensor<4x1xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.reduce(%21 init: %cst_4) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %23 = stablehlo.reshape %22 : (tensor<4xf32>) -> tensor<1x4xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %24 = stablehlo.reduce(%23 init: %cst_5) applies stablehlo.add across dimensions = [0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32>
    %25 = stablehlo.dot_general %21, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %26 = stablehlo.transpose %25, dims = [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32>
    %27 = stablehlo.dot_general %21, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<16x4xf32>) -> tensor<4x16xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %29 = stablehlo.select %6, %27, %28 : tensor<4x16xi1>, tensor<4x16xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.reduce(%29 init: %cst_7) applies stablehlo.add across dimensions = [0] : (tensor<4x16xf32>, tensor<f32>) -> tensor<16xf32>
    %31 = stablehlo.reshape %30 : (tensor<16xf32>) -> tensor<1x16xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %32 = stablehlo.reduce(%31 init: %cst_8) applies stablehlo.add across dimensions = [0] : (tensor<1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %33 = stablehlo.dot_general %29, %arg13, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
    %34 = stablehlo.transpose %33, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    %cst_9 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %36 = stablehlo.multiply %35, %arg4 : tensor<8x16xf32>
    %cst_10 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %38 = stablehlo.multiply %37, %34 : tensor<8x16xf32>
    %39 = stablehlo.add %36, %38 : tensor<8x16xf32>
    %cst_11 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %41 = stablehlo.multiply %40, %arg5 : tensor<16xf32>
    %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %43 = stablehlo.multiply %42, %32 : tensor<16xf32>
    %44 = stablehlo.add %41, %43 : tensor<16xf32>
    %cst_13 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %46 = stablehlo.multiply %45, %arg6 : tensor<16x4xf32>
    %cst_14 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %48 = stablehlo.multiply %47, %26 : tensor<16x4xf32>
    %49 = stablehlo.add %46, %48 : tensor<16x4xf32>
    %cst_15 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %50 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %51 = stablehlo.multiply %50, %arg7 : tensor<4xf32>
    %cst_16 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %53 = stablehlo.multiply %52, %24 : tensor<4xf32>
    %54 = stablehlo.add %51, %53 : tensor<4xf32>
    %cst_17 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %56 = stablehlo.multiply %55, %arg8 : tensor<8x16xf32>
    %cst_18 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %58 = stablehlo.multiply %57, %34 : tensor<8x16xf32>
    %59 = stablehlo.multiply %58, %34 : tensor<8x16xf32>
    %60 = stablehlo.add %56, %59 : tensor<8x16xf32>
    %cst_19 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %61 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %62 = stablehlo.multiply %61, %arg9 : tensor<16xf32>
    %cst_20 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %64 = stablehlo.multiply %63, %32 : tensor<16xf32>
    %65 = stablehlo.multiply %64, %32 : tensor<16xf32>
    %66 = stablehlo.add %62, %65 : tensor<16xf32>
    %cst_21 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %67 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %68 = stablehlo.multiply %67, %arg10 : tensor<16x4xf32>
    %cst_22 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %70 = stablehlo.multiply %69, %26 : tensor<16x4xf32>
    %71 = stablehlo.multiply %70, %26 : tensor<16x4xf32>
    %72 = stablehlo.add %68, %71 : tensor<16x4xf32>
    %cst_23 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %73 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %74 = stablehlo.multiply %73, %arg11 : tensor<4xf32>
    %cst_24 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %76 = stablehlo.multiply %75, %24 : tensor<4xf32>
    %77 = stablehlo.multiply %76, %24 : tensor<4xf32>
    %78 = stablehlo.add %74, %77 : tensor<4xf32>
    %cst_25 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %79 = stablehlo.convert %arg12 : (tensor<i32>) -> tensor<f32>
    %80 = stablehlo.power %cst_25, %79 : tensor<f32>
    %cst_26 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %81 = stablehlo.subtract %cst_26, %80 : tensor<f32>
    %82 = stablehlo.sqrt %81 : tensor<f32>
    %cst_27 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %83 = stablehlo.multiply %cst_27, %82 : tensor<f32>
    %cst_28 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %84 = stablehlo.convert %arg12 : (tensor<i32>) -> tensor<f32>
    %85 = stablehlo.power %cst_28, %84 : tensor<f32>
    %cst_29 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %86 = stablehlo.subtract %cst_29, %85 : tensor<f32>
    %87 = stablehlo.divide %83, %86 : tensor<f32>
    %88 = stablehlo.broadcast_in_dim %87, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %89 = stablehlo.multiply %88, %39 : tensor<8x16xf32>
    %90 = stablehlo.sqrt %60 : tensor<8x16xf32>
    %cst_30 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %92 = stablehlo.add %90, %91 : tensor<8x16xf32>
    %93 = stablehlo.divide %89, %92 : tensor<8x16xf32>
    %94 = stablehlo.subtract %arg0, %93 : tensor<8x16xf32>
    %95 = stablehlo.broadcast_in_dim %87, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %96 = stablehlo.multiply %95, %44 : tensor<16xf32>
    %97 = stablehlo.sqrt %66 : tensor<16xf32>
    %cst_31 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %98 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %99 = stablehlo.add %97, %98 : tensor<16xf32>
    %100 = stablehlo.divide %96, %99 : tensor<16xf32>
    %101 = stablehlo.subtract %arg1, %100 : tensor<16xf32>
    %102 = stablehlo.broadcast_in_dim %87, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %103 = stablehlo.multiply %102, %49 : tensor<16x4xf32>
    %104 = stablehlo.sqrt %72 : tensor<16x4xf32>
    %cst_32 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %105 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %106 = stablehlo.add %104, %105 : tensor<16x4xf32>
    %107 = stablehlo.divide %103, %106 : tensor<16x4xf32>
    %108 = stablehlo.subtract %arg2, %107 : tensor<16x4xf32>
    %109 = stablehlo.broadcast_in_dim %87, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %110 = stablehlo.multiply %109, %54 : tensor<4xf32>
    %111 = stablehlo.sqrt %78 : tensor<4xf32>
    %cst_33 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %112 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %113 = stablehlo.add %111, %112 : tensor<4xf32>
    %114 = stablehlo.divide %110, %113 : tensor<4xf32>
    %115 = stablehlo.subtract %arg3, %114 : tensor<4xf32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %116 = stablehlo.add %arg12, %c : tensor<i32>
    return %94, %101, %108, %115, %39, %44, %49, %54, %60, %66, %72, %78, %116, %16 : tensor<8x16xf32>, tensor<16xf32>, tensor<16x4xf32>, tensor<4xf32>, tensor<8x16xf32>, tensor<16xf32>, tensor<16x4xf32>, tensor<4xf32>, tensor<8x16xf32>, tensor<16xf32>, tensor<16x4xf32>, tensor<4xf32>, tensor<i32>, tensor<f32>
  }
  func.func private @relu(%arg0: tensor<4x16xf32>) -> tensor<4x16xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x16xf32>
    return %1 : tensor<4x16xf32>
  }
  func.func private @log_softmax(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<4xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x4xf32>
    %6 = stablehlo.exponential %5 : tensor<4x4xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %9 = stablehlo.log %8 : tensor<4x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<4x4xf32>
    return %11, %6, %8 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<4x4xf32>, %arg1: tensor<4x1xi32>) -> (tensor<4x1xf32>, tensor<4x1x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<4x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<4x1xi1>, tensor<4x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<4x1xi32>) -> tensor<4x1x1xi32>
    %c_1 = stablehlo.constant dense<3> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<4x1x1xi32>, tensor<4x1x1xi32>) -> tensor<4x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<4x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<4x1x1xi32>, tensor<4x1x1xi32>) -> tensor<4x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<4x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<4x1x1xi1>, tensor<i1>) -> tensor<4x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<4x4xf32>, tensor<4x1x1xi32>) -> tensor<4x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<4x1xi1>, tensor<4x1xf32>
    return %15, %5 : tensor<4x1xf32>, tensor<4x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<4x1x1xi32>, %arg1: tensor<4x1xf32>) -> tensor<4x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x4xf32>, tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<4x4xf32>, %arg1: tensor<4x1xf32>, %arg2: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.negate %arg2 : tensor<4x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.reshape %1 : (tensor<4xf32>) -> tensor<4x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<4x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<4x1xf32>, tensor<f32>) -> tensor<4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<4x4xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<4x4xf32>
    return %7 : tensor<4x4xf32>
  }
}
// ----- convolutional
module @jit_convolutional attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x3x1x4xf32>, %arg1: tensor<3x3x4x8xf32>, %arg2: tensor<32x4xf32>, %arg3: tensor<4x8x8x1xf32>, %arg4: tensor<4xi32>) -> (tensor<3x3x1x4xf32> {jax.result_info = "result['kernels'][0]"}, tensor<3x3x4x8xf32> {jax.result_info = "result['kernels'][1]"}, tensor<32x4xf32> {jax.result_info = "result['weights']"}) {
    %0 = stablehlo.convolution(%arg3, %arg0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x8x8x1xf32>, tensor<3x3x1x4xf32>) -> tensor<4x8x8x4xf32>
    %1 = call @relu(%0) : (tensor<4x8x8x4xf32>) -> tensor<4x8x8x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8x8x4xf32>
    %3 = stablehlo.compare GT, %0, %2, FLOAT : (tensor<4x8x8x4xf32>, tensor<4x8x8x4xf32>) -> tensor<4x8x8x4xi1>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.reduce_window"(%1, %4) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %45 = stablehlo.maximum %arg5, %arg6 : tensor<f32>
      stablehlo.return %45 : tensor<f32>
    }) : (tensor<4x8x8x4xf32>, tensor<f32>) -> tensor<4x4x4x4xf32>
    %6 = stablehlo.convolution(%5, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x4x4x4xf32>, tensor<3x3x4x8xf32>) -> tensor<4x4x4x8xf32>
    %7 = call @relu_0(%6) : (tensor<4x4x4x8xf32>) -> tensor<4x4x4x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x4x4x8xf32>
    %9 = stablehlo.compare GT, %6, %8, FLOAT : (tensor<4x4x4x8xf32>, tensor<4x4x4x8xf32>) -> tensor<4x4x4x8xi1>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<f32>
    %11 = "stablehlo.reduce_window"(%7, %10) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %45 = stablehlo.maximum %arg5, %arg6 : tensor<f32>
      stablehlo.return %45 : tensor<f32>
    }) : (tensor<4x4x4x8xf32>, tensor<f32>) -> tensor<4x2x2x8xf32>
    %12 = stablehlo.reshape %11 : (tensor<4x2x2x8xf32>) -> tensor<4x32xf32>
    %13 = stablehlo.dot_general %12, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32xf32>, tensor<32x4xf32>) -> tensor<4x4xf32>
    %14:2 = call @log_softmax(%13) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x1xf32>)
    %15 = stablehlo.broadcast_in_dim %arg4, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %16 = call @take_along_axis(%15) : (tensor<4x1xi32>) -> tensor<4x1x1xi32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %17 = stablehlo.negate %cst_3 : tensor<f32>
    %cst_4 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %18 = stablehlo.divide %17, %cst_4 : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %20 = call @take_along_axis_1(%16, %19) : (tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x4xf32>
    %21 = call @log_softmax_2(%14#0, %14#1, %20) : (tensor<4x4xf32>, tensor<4x1xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %22 = stablehlo.dot_general %21, %12, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
    %23 = stablehlo.transpose %22, dims = [1, 0] : (tensor<4x32xf32>) -> tensor<32x4xf32>
    %24 = stablehlo.dot_general %21, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<32x4xf32>) -> tensor<4x32xf32>
    %25 = stablehlo.reshape %24 : (tensor<4x32xf32>) -> tensor<4x2x2x8xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %26 = "stablehlo.select_and_scatter"(%7, %25, %cst_5) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %45 = stablehlo.compare GE, %arg5, %arg6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %45 : tensor<i1>
    }, {
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %45 = stablehlo.add %arg5, %arg6 : tensor<f32>
      stablehlo.return %45 : tensor<f32>
    }) : (tensor<4x4x4x8xf32>, tensor<4x2x2x8xf32>, tensor<f32>) -> tensor<4x4x4x8xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x4x4x8xf32>
    %28 = stablehlo.select %9, %26, %27 : tensor<4x4x4x8xi1>, tensor<4x4x4x8xf32>
    %29 = stablehlo.convolution(%5, %28) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x4x4x4xf32>, tensor<4x4x4x8xf32>) -> tensor<3x3x4x8xf32>
    %30 = stablehlo.reverse %arg1, dims = [0, 1] : tensor<3x3x4x8xf32>
    %31 = stablehlo.convolution(%28, %30) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x4x4x8xf32>, tensor<3x3x4x8xf32>) -> tensor<4x4x4x4xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %32 = "stablehlo.select_and_scatter"(%1, %31, %cst_7) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %45 = stablehlo.compare GE, %arg5, %arg6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %45 : tensor<i1>
    }, {
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %45 = stablehlo.add %arg5, %arg6 : tensor<f32>
      stablehlo.return %45 : tensor<f32>
    }) : (tensor<4x8x8x4xf32>, tensor<4x4x4x4xf32>, tensor<f32>) -> tensor<4x8x8x4xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x8x8x4xf32>
    %34 = stablehlo.select %3, %32, %33 : tensor<4x8x8x4xi1>, tensor<4x8x8x4xf32>
    %35 = stablehlo.convolution(%arg3, %34) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x8x8x1xf32>, tensor<4x8x8x4xf32>) -> tensor<3x3x1x4xf32>
    %cst_9 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %37 = stablehlo.multiply %36, %35 : tensor<3x3x1x4xf32>
    %38 = stablehlo.subtract %arg0, %37 : tensor<3x3x1x4xf32>
    %cst_10 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x3x4x8xf32>
    %40 = stablehlo.multiply %39, %29 : tensor<3x3x4x8xf32>
    %41 = stablehlo.subtract %arg1, %40 : tensor<3x3x4x8xf32>
    %cst_11 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %43 = stablehlo.multiply %42, %23 : tensor<32x4xf32>
    %44 = stablehlo.subtract %arg2, %43 : tensor<32x4xf32>
    return %38, %41, %44 : tensor<3x3x1x4xf32>, tensor<3x3x4x8xf32>, tensor<32x4xf32>
  }
  func.func private @relu(%arg0: tensor<4x8x8x4xf32>) -> tensor<4x8x8x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8x8x4xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x8x8x4xf32>
    return %1 : tensor<4x8x8x4xf32>
  }
  func.func private @relu_0(%arg0: tensor<4x4x4x8xf32>) -> tensor<4x4x4x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4x4x8xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x4x4x8xf32>
    return %1 : tensor<4x4x4x8xf32>
  }
  func.func private @log_softmax(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<4xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x4xf32>
    %6 = stablehlo.exponential %5 : tensor<4x4xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    return %6, %8 : tensor<4x4xf32>, tensor<4x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<4x1xi32>) -> tensor<4x1x1xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %1 = stablehlo.compare LT, %arg0, %0, SIGNED : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %3 = stablehlo.add %arg0, %2 : tensor<4x1xi32>
    %4 = stablehlo.select %1, %3, %arg0 : tensor<4x1xi1>, tensor<4x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<4x1xi32>) -> tensor<4x1x1xi32>
    return %5 : tensor<4x1x1xi32>
  }
  func.func private @take_along_axis_1(%arg0: tensor<4x1x1xi32>, %arg1: tensor<4x1xf32>) -> tensor<4x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x4xf32>, tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
  func.func private @log_softmax_2(%arg0: tensor<4x4xf32>, %arg1: tensor<4x1xf32>, %arg2: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.negate %arg2 : tensor<4x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.reshape %1 : (tensor<4xf32>) -> tensor<4x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<4x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<4x1xf32>, tensor<f32>) -> tensor<4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<4x4xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<4x4xf32>
    return %7 : tensor<4x4xf32>
  }
}
// ----- attention
module @jit_attention attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x8xf32>, %arg1: tensor<8x2x4xf32>, %arg2: tensor<2x4x8xf32>, %arg3: tensor<8x2x4xf32>, %arg4: tensor<8x16xf32>, %arg5: tensor<8x2x4xf32>, %arg6: tensor<2x6x8xf32>) -> (tensor<2x6x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg6 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x6x8xf32>, tensor<f32>) -> tensor<2x6xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x1xf32>
    %cst_0 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x6x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x6x1xf32>) -> tensor<2x6x8xf32>
    %5 = stablehlo.subtract %arg6, %4 : tensor<2x6x8xf32>
    %6 = chlo.square %5 : tensor<2x6x8xf32> -> tensor<2x6x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x6x8xf32>, tensor<f32>) -> tensor<2x6xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x1xf32>
    %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %10 = stablehlo.divide %8, %9 : tensor<2x6x1xf32>
    %cst_3 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %12 = stablehlo.add %10, %11 : tensor<2x6x1xf32>
    %13 = stablehlo.rsqrt %12 : tensor<2x6x1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2] : (tensor<2x6x1xf32>) -> tensor<2x6x8xf32>
    %15 = stablehlo.multiply %5, %14 : tensor<2x6x8xf32>
    %16 = stablehlo.dot_general %arg3, %15, contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x4xf32>, tensor<2x6x8xf32>) -> tensor<2x4x2x6xf32>
    %17 = stablehlo.transpose %16, dims = [2, 0, 3, 1] : (tensor<2x4x2x6xf32>) -> tensor<2x2x6x4xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18 = stablehlo.reduce(%arg6 init: %cst_4) applies stablehlo.add across dimensions = [2] : (tensor<2x6x8xf32>, tensor<f32>) -> tensor<2x6xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x1xf32>
    %cst_5 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %21 = stablehlo.divide %19, %20 : tensor<2x6x1xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2] : (tensor<2x6x1xf32>) -> tensor<2x6x8xf32>
    %23 = stablehlo.subtract %arg6, %22 : tensor<2x6x8xf32>
    %24 = chlo.square %23 : tensor<2x6x8xf32> -> tensor<2x6x8xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = stablehlo.reduce(%24 init: %cst_6) applies stablehlo.add across dimensions = [2] : (tensor<2x6x8xf32>, tensor<f32>) -> tensor<2x6xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x1xf32>
    %cst_7 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %28 = stablehlo.divide %26, %27 : tensor<2x6x1xf32>
    %cst_8 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %30 = stablehlo.add %28, %29 : tensor<2x6x1xf32>
    %31 = stablehlo.rsqrt %30 : tensor<2x6x1xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0, 1, 2] : (tensor<2x6x1xf32>) -> tensor<2x6x8xf32>
    %33 = stablehlo.multiply %23, %32 : tensor<2x6x8xf32>
    %34 = stablehlo.dot_general %arg1, %33, contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x4xf32>, tensor<2x6x8xf32>) -> tensor<2x4x2x6xf32>
    %35 = stablehlo.transpose %34, dims = [2, 0, 3, 1] : (tensor<2x4x2x6xf32>) -> tensor<2x2x6x4xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %36 = stablehlo.reduce(%arg6 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<2x6x8xf32>, tensor<f32>) -> tensor<2x6xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x1xf32>
    %cst_10 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %39 = stablehlo.divide %37, %38 : tensor<2x6x1xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2] : (tensor<2x6x1xf32>) -> tensor<2x6x8xf32>
    %41 = stablehlo.subtract %arg6, %40 : tensor<2x6x8xf32>
    %42 = chlo.square %41 : tensor<2x6x8xf32> -> tensor<2x6x8xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %43 = stablehlo.reduce(%42 init: %cst_11) applies stablehlo.add across dimensions = [2] : (tensor<2x6x8xf32>, tensor<f32>) -> tensor<2x6xf32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x1xf32>
    %cst_12 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %46 = stablehlo.divide %44, %45 : tensor<2x6x1xf32>
    %cst_13 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %48 = stablehlo.add %46, %47 : tensor<2x6x1xf32>
    %49 = stablehlo.rsqrt %48 : tensor<2x6x1xf32>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2] : (tensor<2x6x1xf32>) -> tensor<2x6x8xf32>
    %51 = stablehlo.multiply %41, %50 : tensor<2x6x8xf32>
    %52 = stablehlo.dot_general %arg5, %51, contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x4xf32>, tensor<2x6x8xf32>) -> tensor<2x4x2x6xf32>
    %53 = stablehlo.transpose %52, dims = [2, 0, 3, 1] : (tensor<2x4x2x6xf32>) -> tensor<2x2x6x4xf32>
    %54 = stablehlo.dot_general %17, %35, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
    %cst_14 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %55 = stablehlo.sqrt %cst_14 : tensor<f32>
    %56 = stablehlo.convert %55 : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %56, dims = [] : (tensor<f32>) -> tensor<2x2x6x6xf32>
    %58 = stablehlo.divide %54, %57 : tensor<2x2x6x6xf32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %59 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<6x6xi1>
    %60 = call @tril(%59) : (tensor<6x6xi1>) -> tensor<6x6xi1>
    %cst_15 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %61 = call @_where(%60, %58, %cst_15) : (tensor<6x6xi1>, tensor<2x2x6x6xf32>, tensor<f32>) -> tensor<2x2x6x6xf32>
    %cst_16 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %62 = stablehlo.reduce(%61 init: %cst_16) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x6x6xf32>, tensor<f32>) -> tensor<2x2x6xf32>
    %cst_17 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x2x6xf32>
    %64 = stablehlo.maximum %63, %62 : tensor<2x2x6xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0, 1, 2] : (tensor<2x2x6xf32>) -> tensor<2x2x6x1xf32>
    %66 = stablehlo.broadcast_in_dim %65, dims = [0, 1, 2, 3] : (tensor<2x2x6x1xf32>) -> tensor<2x2x6x6xf32>
    %67 = stablehlo.subtract %61, %66 : tensor<2x2x6x6xf32>
    %68 = stablehlo.exponential %67 : tensor<2x2x6x6xf32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %69 = stablehlo.reduce(%68 init: %cst_18) applies stablehlo.add across dimensions = [3] : (tensor<2x2x6x6xf32>, tensor<f32>) -> tensor<2x2x6xf32>
    %70 = stablehlo.broadcast_in_dim %69, dims = [0, 1, 2] : (tensor<2x2x6xf32>) -> tensor<2x2x6x1xf32>
    %71 = stablehlo.broadcast_in_dim %70, dims = [0, 1, 2, 3] : (tensor<2x2x6x1xf32>) -> tensor<2x2x6x6xf32>
    %72 = stablehlo.divide %68, %71 : tensor<2x2x6x6xf32>
    %73 = stablehlo.dot_general %53, %72, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x6x4xf32>, tensor<2x2x6x6xf32>) -> tensor<2x2x4x6xf32>
    %74 = stablehlo.dot_general %73, %arg2, contracting_dims = [2, 1] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<2x2x4x6xf32>, tensor<2x4x8xf32>) -> tensor<2x6x8xf32>
    %75 = stablehlo.add %arg6, %74 : tensor<2x6x8xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %76 = stablehlo.reduce(%75 init: %cst_19) applies stablehlo.add across dimensions = [2] : (tensor<2x6x8xf32>, tensor<f32>) -> tensor<2x6xf32>
    %77 = stablehlo.broadcast_in_dim %76, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x1xf32>
    %cst_20 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %78 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %79 = stablehlo.divide %77, %78 : tensor<2x6x1xf32>
    %80 = stablehlo.broadcast_in_dim %79, dims = [0, 1, 2] : (tensor<2x6x1xf32>) -> tensor<2x6x8xf32>
    %81 = stablehlo.subtract %75, %80 : tensor<2x6x8xf32>
    %82 = chlo.square %81 : tensor<2x6x8xf32> -> tensor<2x6x8xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %83 = stablehlo.reduce(%82 init: %cst_21) applies stablehlo.add across dimensions = [2] : (tensor<2x6x8xf32>, tensor<f32>) -> tensor<2x6xf32>
    %84 = stablehlo.broadcast_in_dim %83, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x1xf32>
    %cst_22 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %85 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %86 = stablehlo.divide %84, %85 : tensor<2x6x1xf32>
    %cst_23 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %87 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<2x6x1xf32>
    %88 = stablehlo.add %86, %87 : tensor<2x6x1xf32>
    %89 = stablehlo.rsqrt %88 : tensor<2x6x1xf32>
    %90 = stablehlo.broadcast_in_dim %89, dims = [0, 1, 2] : (tensor<2x6x1xf32>) -> tensor<2x6x8xf32>
    %91 = stablehlo.multiply %81, %90 : tensor<2x6x8xf32>
    %92 = stablehlo.dot_general %91, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x6x8xf32>, tensor<8x16xf32>) -> tensor<2x6x16xf32>
    %93 = stablehlo.multiply %92, %92 : tensor<2x6x16xf32>
    %94 = stablehlo.multiply %93, %92 : tensor<2x6x16xf32>
    %cst_24 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %95 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<2x6x16xf32>
    %96 = stablehlo.multiply %95, %94 : tensor<2x6x16xf32>
    %97 = stablehlo.add %92, %96 : tensor<2x6x16xf32>
    %cst_25 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %98 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<2x6x16xf32>
    %99 = stablehlo.multiply %98, %97 : tensor<2x6x16xf32>
    %100 = stablehlo.tanh %99 : tensor<2x6x16xf32>
    %cst_26 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<2x6x16xf32>
    %102 = stablehlo.add %101, %100 : tensor<2x6x16xf32>
    %cst_27 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<2x6x16xf32>
    %104 = stablehlo.multiply %103, %102 : tensor<2x6x16xf32>
    %105 = stablehlo.multiply %92, %104 : tensor<2x6x16xf32>
    %106 = stablehlo.dot_general %105, %arg0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x6x16xf32>, tensor<16x8xf32>) -> tensor<2x6x8xf32>
    %107 = stablehlo.add %75, %106 : tensor<2x6x8xf32>
    return %107 : tensor<2x6x8xf32>
  }
  func.func private @tril(%arg0: tensor<6x6xi1>) -> tensor<6x6xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<6x6xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6x6xi32>
    %2 = stablehlo.add %0, %1 : tensor<6x6xi32>
    %3 = stablehlo.iota dim = 1 : tensor<6x6xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<6x6xi32>, tensor<6x6xi32>) -> tensor<6x6xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<6x6xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<6x6xi1>, tensor<6x6xi1>
    return %6 : tensor<6x6xi1>
  }
  func.func private @_where(%arg0: tensor<6x6xi1>, %arg1: tensor<2x2x6x6xf32>, %arg2: tensor<f32>) -> tensor<2x2x6x6xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<6x6xi1>) -> tensor<2x2x6x6xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x2x6x6xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
    return %3 : tensor<2x2x6x6xf32>
  }
}
// ----- transformer
module @jit_transformer attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x8xf32>, %arg1: tensor<16x8xf32>, %arg2: tensor<8x2x4xf32>, %arg3: tensor<2x4x8xf32>, %arg4: tensor<8x2x4xf32>, %arg5: tensor<8x16xf32>, %arg6: tensor<8x2x4xf32>, %arg7: tensor<2x6xi32>, %arg8: tensor<2xui32>) -> (tensor<16x8xf32> {jax.result_info = "result['embedding']"}, tensor<16x8xf32> {jax.result_info = "result['layer']['down']"}, tensor<8x2x4xf32> {jax.result_info = "result['layer']['k']"}, tensor<2x4x8xf32> {jax.result_info = "result['layer']['o']"}, tensor<8x2x4xf32> {jax.result_info = "result['layer']['q']"}, tensor<8x16xf32> {jax.result_info = "result['layer']['up']"}, tensor<8x2x4xf32> {jax.result_info = "result['layer']['v']"}) {
    %0 = stablehlo.slice %arg7 [0:2, 0:5] : (tensor<2x6xi32>) -> tensor<2x5xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x5xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<2x5xi32>, tensor<2x5xi32>) -> tensor<2x5xi1>
    %c_0 = stablehlo.constant dense<16> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x5xi32>
    %4 = stablehlo.add %0, %3 : tensor<2x5xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<2x5xi1>, tensor<2x5xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x5xi32>) -> tensor<2x5x1xi32>
    %7 = "stablehlo.gather"(%arg0, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<16x8xf32>, tensor<2x5x1xi32>) -> tensor<2x5x8xf32>
    %8 = stablehlo.convert %7 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %9 = stablehlo.convert %arg1 : (tensor<16x8xf32>) -> tensor<16x8xbf16>
    %10 = stablehlo.convert %arg2 : (tensor<8x2x4xf32>) -> tensor<8x2x4xbf16>
    %11 = stablehlo.convert %arg3 : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
    %12 = stablehlo.convert %arg4 : (tensor<8x2x4xf32>) -> tensor<8x2x4xbf16>
    %13 = stablehlo.convert %arg5 : (tensor<8x16xf32>) -> tensor<8x16xbf16>
    %14 = stablehlo.convert %arg6 : (tensor<8x2x4xf32>) -> tensor<8x2x4xbf16>
    %15 = stablehlo.convert %8 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %16 = stablehlo.reduce(%15 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xf32>, tensor<f32>) -> tensor<2x5xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x1xf32>
    %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %19 = stablehlo.divide %17, %18 : tensor<2x5x1xf32>
    %20 = stablehlo.convert %19 : (tensor<2x5x1xf32>) -> tensor<2x5x1xbf16>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %22 = stablehlo.subtract %8, %21 : tensor<2x5x8xbf16>
    %23 = chlo.square %22 : tensor<2x5x8xbf16> -> tensor<2x5x8xbf16>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<bf16>
    %24 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<bf16>) -> tensor<2x5x8xbf16>
    %25 = stablehlo.multiply %24, %22 : tensor<2x5x8xbf16>
    %26 = stablehlo.convert %23 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.reduce(%26 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xf32>, tensor<f32>) -> tensor<2x5xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x1xf32>
    %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %30 = stablehlo.divide %28, %29 : tensor<2x5x1xf32>
    %31 = stablehlo.convert %30 : (tensor<2x5x1xf32>) -> tensor<2x5x1xbf16>
    %cst_5 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %32 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<bf16>) -> tensor<2x5x1xbf16>
    %33 = stablehlo.add %31, %32 : tensor<2x5x1xbf16>
    %34 = stablehlo.rsqrt %33 : tensor<2x5x1xbf16>
    %35 = stablehlo.divide %34, %33 : tensor<2x5x1xbf16>
    %cst_6 = stablehlo.constant dense<-5.000000e-01> : tensor<bf16>
    %36 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<bf16>) -> tensor<2x5x1xbf16>
    %37 = stablehlo.multiply %36, %35 : tensor<2x5x1xbf16>
    %38 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %39 = stablehlo.multiply %22, %38 : tensor<2x5x8xbf16>
    %40 = stablehlo.dot_general %12, %39, contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x4xbf16>, tensor<2x5x8xbf16>) -> tensor<2x4x2x5xbf16>
    %41 = stablehlo.transpose %40, dims = [2, 0, 3, 1] : (tensor<2x4x2x5xbf16>) -> tensor<2x2x5x4xbf16>
    %42 = stablehlo.convert %8 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %43 = stablehlo.reduce(%42 init: %cst_7) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xf32>, tensor<f32>) -> tensor<2x5xf32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x1xf32>
    %cst_8 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %46 = stablehlo.divide %44, %45 : tensor<2x5x1xf32>
    %47 = stablehlo.convert %46 : (tensor<2x5x1xf32>) -> tensor<2x5x1xbf16>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %49 = stablehlo.subtract %8, %48 : tensor<2x5x8xbf16>
    %50 = chlo.square %49 : tensor<2x5x8xbf16> -> tensor<2x5x8xbf16>
    %cst_9 = stablehlo.constant dense<2.000000e+00> : tensor<bf16>
    %51 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<2x5x8xbf16>
    %52 = stablehlo.multiply %51, %49 : tensor<2x5x8xbf16>
    %53 = stablehlo.convert %50 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %54 = stablehlo.reduce(%53 init: %cst_10) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xf32>, tensor<f32>) -> tensor<2x5xf32>
    %55 = stablehlo.broadcast_in_dim %54, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x1xf32>
    %cst_11 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %57 = stablehlo.divide %55, %56 : tensor<2x5x1xf32>
    %58 = stablehlo.convert %57 : (tensor<2x5x1xf32>) -> tensor<2x5x1xbf16>
    %cst_12 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %59 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<bf16>) -> tensor<2x5x1xbf16>
    %60 = stablehlo.add %58, %59 : tensor<2x5x1xbf16>
    %61 = stablehlo.rsqrt %60 : tensor<2x5x1xbf16>
    %62 = stablehlo.divide %61, %60 : tensor<2x5x1xbf16>
    %cst_13 = stablehlo.constant dense<-5.000000e-01> : tensor<bf16>
    %63 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<bf16>) -> tensor<2x5x1xbf16>
    %64 = stablehlo.multiply %63, %62 : tensor<2x5x1xbf16>
    %65 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %66 = stablehlo.multiply %49, %65 : tensor<2x5x8xbf16>
    %67 = stablehlo.dot_general %10, %66, contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x4xbf16>, tensor<2x5x8xbf16>) -> tensor<2x4x2x5xbf16>
    %68 = stablehlo.transpose %67, dims = [2, 0, 3, 1] : (tensor<2x4x2x5xbf16>) -> tensor<2x2x5x4xbf16>
    %69 = stablehlo.convert %8 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %70 = stablehlo.reduce(%69 init: %cst_14) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xf32>, tensor<f32>) -> tensor<2x5xf32>
    %71 = stablehlo.broadcast_in_dim %70, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x1xf32>
    %cst_15 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %73 = stablehlo.divide %71, %72 : tensor<2x5x1xf32>
    %74 = stablehlo.convert %73 : (tensor<2x5x1xf32>) -> tensor<2x5x1xbf16>
    %75 = stablehlo.broadcast_in_dim %74, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %76 = stablehlo.subtract %8, %75 : tensor<2x5x8xbf16>
    %77 = chlo.square %76 : tensor<2x5x8xbf16> -> tensor<2x5x8xbf16>
    %cst_16 = stablehlo.constant dense<2.000000e+00> : tensor<bf16>
    %78 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<bf16>) -> tensor<2x5x8xbf16>
    %79 = stablehlo.multiply %78, %76 : tensor<2x5x8xbf16>
    %80 = stablehlo.convert %77 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %81 = stablehlo.reduce(%80 init: %cst_17) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xf32>, tensor<f32>) -> tensor<2x5xf32>
    %82 = stablehlo.broadcast_in_dim %81, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x1xf32>
    %cst_18 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %83 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %84 = stablehlo.divide %82, %83 : tensor<2x5x1xf32>
    %85 = stablehlo.convert %84 : (tensor<2x5x1xf32>) -> tensor<2x5x1xbf16>
    %cst_19 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %86 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<2x5x1xbf16>
    %87 = stablehlo.add %85, %86 : tensor<2x5x1xbf16>
    %88 = stablehlo.rsqrt %87 : tensor<2x5x1xbf16>
    %89 = stablehlo.divide %88, %87 : tensor<2x5x1xbf16>
    %cst_20 = stablehlo.constant dense<-5.000000e-01> : tensor<bf16>
    %90 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<bf16>) -> tensor<2x5x1xbf16>
    %91 = stablehlo.multiply %90, %89 : tensor<2x5x1xbf16>
    %92 = stablehlo.broadcast_in_dim %88, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %93 = stablehlo.multiply %76, %92 : tensor<2x5x8xbf16>
    %94 = stablehlo.dot_general %14, %93, contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x4xbf16>, tensor<2x5x8xbf16>) -> tensor<2x4x2x5xbf16>
    %95 = stablehlo.transpose %94, dims = [2, 0, 3, 1] : (tensor<2x4x2x5xbf16>) -> tensor<2x2x5x4xbf16>
    %96 = stablehlo.dot_general %41, %68, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x5x4xbf16>, tensor<2x2x5x4xbf16>) -> tensor<2x2x5x5xbf16>
    %cst_21 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %97 = stablehlo.sqrt %cst_21 : tensor<f32>
    %98 = stablehlo.convert %97 : (tensor<f32>) -> tensor<bf16>
    %99 = stablehlo.broadcast_in_dim %98, dims = [] : (tensor<bf16>) -> tensor<2x2x5x5xbf16>
    %100 = stablehlo.divide %96, %99 : tensor<2x2x5x5xbf16>
    %c_22 = stablehlo.constant dense<true> : tensor<i1>
    %101 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<i1>) -> tensor<5x5xi1>
    %102 = call @tril(%101) : (tensor<5x5xi1>) -> tensor<5x5xi1>
    %cst_23 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %103:2 = call @_where(%102, %100, %cst_23) : (tensor<5x5xi1>, tensor<2x2x5x5xbf16>, tensor<f32>) -> (tensor<2x2x5x5xbf16>, tensor<2x2x5x5xi1>)
    %cst_24 = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %104 = stablehlo.reduce(%103#0 init: %cst_24) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x5x5xbf16>, tensor<bf16>) -> tensor<2x2x5xbf16>
    %cst_25 = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %105 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<bf16>) -> tensor<2x2x5xbf16>
    %106 = stablehlo.maximum %105, %104 : tensor<2x2x5xbf16>
    %107 = stablehlo.broadcast_in_dim %106, dims = [0, 1, 2] : (tensor<2x2x5xbf16>) -> tensor<2x2x5x1xbf16>
    %108 = stablehlo.broadcast_in_dim %107, dims = [0, 1, 2, 3] : (tensor<2x2x5x1xbf16>) -> tensor<2x2x5x5xbf16>
    %109 = stablehlo.subtract %103#0, %108 : tensor<2x2x5x5xbf16>
    %110 = stablehlo.exponential %109 : tensor<2x2x5x5xbf16>
    %111 = stablehlo.convert %110 : (tensor<2x2x5x5xbf16>) -> tensor<2x2x5x5xf32>
    %cst_26 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %112 = stablehlo.reduce(%111 init: %cst_26) applies stablehlo.add across dimensions = [3] : (tensor<2x2x5x5xf32>, tensor<f32>) -> tensor<2x2x5xf32>
    %113 = stablehlo.broadcast_in_dim %112, dims = [0, 1, 2] : (tensor<2x2x5xf32>) -> tensor<2x2x5x1xf32>
    %114 = stablehlo.convert %113 : (tensor<2x2x5x1xf32>) -> tensor<2x2x5x1xbf16>
    %115 = stablehlo.broadcast_in_dim %114, dims = [0, 1, 2, 3] : (tensor<2x2x5x1xbf16>) -> tensor<2x2x5x5xbf16>
    %116 = stablehlo.divide %110, %115 : tensor<2x2x5x5xbf16>
    %117 = stablehlo.multiply %114, %114 : tensor<2x2x5x1xbf16>
    %cst_27 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %118 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<bf16>) -> tensor<2x2x5x1xbf16>
    %119 = stablehlo.divide %118, %117 : tensor<2x2x5x1xbf16>
    %120 = stablehlo.dot_general %95, %116, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x5x4xbf16>, tensor<2x2x5x5xbf16>) -> tensor<2x2x4x5xbf16>
    %121 = stablehlo.dot_general %120, %11, contracting_dims = [2, 1] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<2x2x4x5xbf16>, tensor<2x4x8xbf16>) -> tensor<2x5x8xbf16>
    %122 = stablehlo.add %8, %121 : tensor<2x5x8xbf16>
    %123 = stablehlo.convert %122 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %124 = stablehlo.reduce(%123 init: %cst_28) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xf32>, tensor<f32>) -> tensor<2x5xf32>
    %125 = stablehlo.broadcast_in_dim %124, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x1xf32>
    %cst_29 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %126 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %127 = stablehlo.divide %125, %126 : tensor<2x5x1xf32>
    %128 = stablehlo.convert %127 : (tensor<2x5x1xf32>) -> tensor<2x5x1xbf16>
    %129 = stablehlo.broadcast_in_dim %128, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %130 = stablehlo.subtract %122, %129 : tensor<2x5x8xbf16>
    %131 = chlo.square %130 : tensor<2x5x8xbf16> -> tensor<2x5x8xbf16>
    %cst_30 = stablehlo.constant dense<2.000000e+00> : tensor<bf16>
    %132 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<bf16>) -> tensor<2x5x8xbf16>
    %133 = stablehlo.multiply %132, %130 : tensor<2x5x8xbf16>
    %134 = stablehlo.convert %131 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %135 = stablehlo.reduce(%134 init: %cst_31) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xf32>, tensor<f32>) -> tensor<2x5xf32>
    %136 = stablehlo.broadcast_in_dim %135, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x1xf32>
    %cst_32 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %137 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %138 = stablehlo.divide %136, %137 : tensor<2x5x1xf32>
    %139 = stablehlo.convert %138 : (tensor<2x5x1xf32>) -> tensor<2x5x1xbf16>
    %cst_33 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %140 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<bf16>) -> tensor<2x5x1xbf16>
    %141 = stablehlo.add %139, %140 : tensor<2x5x1xbf16>
    %142 = stablehlo.rsqrt %141 : tensor<2x5x1xbf16>
    %143 = stablehlo.divide %142, %141 : tensor<2x5x1xbf16>
    %cst_34 = stablehlo.constant dense<-5.000000e-01> : tensor<bf16>
    %144 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<bf16>) -> tensor<2x5x1xbf16>
    %145 = stablehlo.multiply %144, %143 : tensor<2x5x1xbf16>
    %146 = stablehlo.broadcast_in_dim %142, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %147 = stablehlo.multiply %130, %146 : tensor<2x5x8xbf16>
    %148 = stablehlo.dot_general %147, %13, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x5x8xbf16>, tensor<8x16xbf16>) -> tensor<2x5x16xbf16>
    %149 = stablehlo.multiply %148, %148 : tensor<2x5x16xbf16>
    %150 = stablehlo.multiply %149, %148 : tensor<2x5x16xbf16>
    %151 = stablehlo.multiply %148, %148 : tensor<2x5x16xbf16>
    %cst_35 = stablehlo.constant dense<3.000000e+00> : tensor<bf16>
    %152 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<bf16>) -> tensor<2x5x16xbf16>
    %153 = stablehlo.multiply %152, %151 : tensor<2x5x16xbf16>
    %cst_36 = stablehlo.constant dense<4.467770e-02> : tensor<bf16>
    %154 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<bf16>) -> tensor<2x5x16xbf16>
    %155 = stablehlo.multiply %154, %150 : tensor<2x5x16xbf16>
    %156 = stablehlo.add %148, %155 : tensor<2x5x16xbf16>
    %cst_37 = stablehlo.constant dense<7.968750e-01> : tensor<bf16>
    %157 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<bf16>) -> tensor<2x5x16xbf16>
    %158 = stablehlo.multiply %157, %156 : tensor<2x5x16xbf16>
    %159 = stablehlo.tanh %158 : tensor<2x5x16xbf16>
    %cst_38 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %160 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<bf16>) -> tensor<2x5x16xbf16>
    %161 = stablehlo.subtract %160, %159 : tensor<2x5x16xbf16>
    %cst_39 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %162 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<bf16>) -> tensor<2x5x16xbf16>
    %163 = stablehlo.add %162, %159 : tensor<2x5x16xbf16>
    %cst_40 = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %164 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<bf16>) -> tensor<2x5x16xbf16>
    %165 = stablehlo.multiply %164, %163 : tensor<2x5x16xbf16>
    %166 = stablehlo.multiply %148, %165 : tensor<2x5x16xbf16>
    %167 = stablehlo.dot_general %166, %9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x5x16xbf16>, tensor<16x8xbf16>) -> tensor<2x5x8xbf16>
    %168 = stablehlo.add %122, %167 : tensor<2x5x8xbf16>
    %cst_41 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %169 = call @_bernoulli(%arg8, %cst_41) : (tensor<2xui32>, tensor<f32>) -> tensor<2x5x8xi1>
    %cst_42 = stablehlo.constant dense<8.984370e-01> : tensor<bf16>
    %170 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<bf16>) -> tensor<2x5x8xbf16>
    %171 = stablehlo.divide %168, %170 : tensor<2x5x8xbf16>
    %c_43 = stablehlo.constant dense<0> : tensor<i32>
    %172 = call @_where_0(%169, %171, %c_43) : (tensor<2x5x8xi1>, tensor<2x5x8xbf16>, tensor<i32>) -> tensor<2x5x8xbf16>
    %173 = stablehlo.convert %172 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %174 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    %175 = stablehlo.dot_general %173, %174, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x5x8xf32>, tensor<8x16xf32>) -> tensor<2x5x16xf32>
    %176 = stablehlo.reshape %175 : (tensor<2x5x16xf32>) -> tensor<10x16xf32>
    %177 = stablehlo.slice %arg7 [0:2, 1:6] : (tensor<2x6xi32>) -> tensor<2x5xi32>
    %178 = stablehlo.reshape %177 : (tensor<2x5xi32>) -> tensor<10xi32>
    %179:2 = call @log_softmax(%176) : (tensor<10x16xf32>) -> (tensor<10x16xf32>, tensor<10x1xf32>)
    %180 = stablehlo.broadcast_in_dim %178, dims = [0] : (tensor<10xi32>) -> tensor<10x1xi32>
    %181 = call @take_along_axis(%180) : (tensor<10x1xi32>) -> tensor<10x1x1xi32>
    %cst_44 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %182 = stablehlo.negate %cst_44 : tensor<f32>
    %cst_45 = stablehlo.constant dense<1.000000e+01> : tensor<f32>
    %183 = stablehlo.divide %182, %cst_45 : tensor<f32>
    %184 = stablehlo.broadcast_in_dim %183, dims = [] : (tensor<f32>) -> tensor<10x1xf32>
    %185 = call @take_along_axis_1(%181, %184) : (tensor<10x1x1xi32>, tensor<10x1xf32>) -> tensor<10x16xf32>
    %186 = call @log_softmax_2(%179#0, %179#1, %185) : (tensor<10x16xf32>, tensor<10x1xf32>, tensor<10x16xf32>) -> tensor<10x16xf32>
    %187 = stablehlo.reshape %186 : (tensor<10x16xf32>) -> tensor<2x5x16xf32>
    %188 = stablehlo.dot_general %187, %173, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x5x16xf32>, tensor<2x5x8xf32>) -> tensor<16x8xf32>
    %189 = stablehlo.transpose %188, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    %190 = stablehlo.dot_general %187, %174, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x5x16xf32>, tensor<8x16xf32>) -> tensor<2x5x8xf32>
    %191 = stablehlo.transpose %189, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    %192 = stablehlo.convert %190 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %193 = call @_where_3(%169, %192) : (tensor<2x5x8xi1>, tensor<2x5x8xbf16>) -> tensor<2x5x8xbf16>
    %cst_46 = stablehlo.constant dense<8.984370e-01> : tensor<bf16>
    %194 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<bf16>) -> tensor<2x5x8xbf16>
    %195 = stablehlo.divide %193, %194 : tensor<2x5x8xbf16>
    %196 = stablehlo.dot_general %195, %166, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x5x8xbf16>, tensor<2x5x16xbf16>) -> tensor<8x16xbf16>
    %197 = stablehlo.transpose %196, dims = [1, 0] : (tensor<8x16xbf16>) -> tensor<16x8xbf16>
    %198 = stablehlo.dot_general %195, %9, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x5x8xbf16>, tensor<16x8xbf16>) -> tensor<2x5x16xbf16>
    %199 = stablehlo.multiply %148, %198 : tensor<2x5x16xbf16>
    %200 = stablehlo.multiply %198, %165 : tensor<2x5x16xbf16>
    %cst_47 = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %201 = stablehlo.broadcast_in_dim %cst_47, dims = [] : (tensor<bf16>) -> tensor<2x5x16xbf16>
    %202 = stablehlo.multiply %201, %199 : tensor<2x5x16xbf16>
    %203 = stablehlo.multiply %202, %161 : tensor<2x5x16xbf16>
    %204 = stablehlo.multiply %203, %159 : tensor<2x5x16xbf16>
    %205 = stablehlo.add %203, %204 : tensor<2x5x16xbf16>
    %cst_48 = stablehlo.constant dense<7.968750e-01> : tensor<bf16>
    %206 = stablehlo.broadcast_in_dim %cst_48, dims = [] : (tensor<bf16>) -> tensor<2x5x16xbf16>
    %207 = stablehlo.multiply %206, %205 : tensor<2x5x16xbf16>
    %208 = stablehlo.add %200, %207 : tensor<2x5x16xbf16>
    %cst_49 = stablehlo.constant dense<4.467770e-02> : tensor<bf16>
    %209 = stablehlo.broadcast_in_dim %cst_49, dims = [] : (tensor<bf16>) -> tensor<2x5x16xbf16>
    %210 = stablehlo.multiply %209, %207 : tensor<2x5x16xbf16>
    %211 = stablehlo.multiply %210, %153 : tensor<2x5x16xbf16>
    %212 = stablehlo.add %208, %211 : tensor<2x5x16xbf16>
    %213 = stablehlo.dot_general %212, %147, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x5x16xbf16>, tensor<2x5x8xbf16>) -> tensor<16x8xbf16>
    %214 = stablehlo.transpose %213, dims = [1, 0] : (tensor<16x8xbf16>) -> tensor<8x16xbf16>
    %215 = stablehlo.dot_general %212, %13, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x5x16xbf16>, tensor<8x16xbf16>) -> tensor<2x5x8xbf16>
    %216 = stablehlo.multiply %130, %215 : tensor<2x5x8xbf16>
    %cst_50 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %217 = stablehlo.reduce(%216 init: %cst_50) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xbf16>, tensor<bf16>) -> tensor<2x5xbf16>
    %218 = stablehlo.reshape %217 : (tensor<2x5xbf16>) -> tensor<2x5x1xbf16>
    %219 = stablehlo.broadcast_in_dim %142, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %220 = stablehlo.multiply %215, %219 : tensor<2x5x8xbf16>
    %221 = stablehlo.multiply %218, %145 : tensor<2x5x1xbf16>
    %222 = stablehlo.convert %221 : (tensor<2x5x1xbf16>) -> tensor<2x5x1xf32>
    %cst_51 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %223 = stablehlo.broadcast_in_dim %cst_51, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %224 = stablehlo.divide %222, %223 : tensor<2x5x1xf32>
    %cst_52 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %225 = stablehlo.reduce(%224 init: %cst_52) applies stablehlo.add across dimensions = [2] : (tensor<2x5x1xf32>, tensor<f32>) -> tensor<2x5xf32>
    %226 = stablehlo.broadcast_in_dim %225, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x8xf32>
    %227 = stablehlo.convert %226 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %228 = stablehlo.multiply %227, %133 : tensor<2x5x8xbf16>
    %229 = stablehlo.add %220, %228 : tensor<2x5x8xbf16>
    %230 = stablehlo.negate %229 : tensor<2x5x8xbf16>
    %cst_53 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %231 = stablehlo.reduce(%230 init: %cst_53) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xbf16>, tensor<bf16>) -> tensor<2x5xbf16>
    %232 = stablehlo.reshape %231 : (tensor<2x5xbf16>) -> tensor<2x5x1xbf16>
    %233 = stablehlo.add %195, %229 : tensor<2x5x8xbf16>
    %234 = stablehlo.convert %232 : (tensor<2x5x1xbf16>) -> tensor<2x5x1xf32>
    %cst_54 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %235 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %236 = stablehlo.divide %234, %235 : tensor<2x5x1xf32>
    %cst_55 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %237 = stablehlo.reduce(%236 init: %cst_55) applies stablehlo.add across dimensions = [2] : (tensor<2x5x1xf32>, tensor<f32>) -> tensor<2x5xf32>
    %238 = stablehlo.broadcast_in_dim %237, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x8xf32>
    %239 = stablehlo.convert %238 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %240 = stablehlo.add %233, %239 : tensor<2x5x8xbf16>
    %241 = stablehlo.dot_general %240, %120, contracting_dims = [0, 1] x [0, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x5x8xbf16>, tensor<2x2x4x5xbf16>) -> tensor<8x2x4xbf16>
    %242 = stablehlo.transpose %241, dims = [1, 2, 0] : (tensor<8x2x4xbf16>) -> tensor<2x4x8xbf16>
    %243 = stablehlo.dot_general %240, %11, contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x5x8xbf16>, tensor<2x4x8xbf16>) -> tensor<2x5x2x4xbf16>
    %244 = stablehlo.transpose %243, dims = [0, 2, 3, 1] : (tensor<2x5x2x4xbf16>) -> tensor<2x2x4x5xbf16>
    %245 = stablehlo.dot_general %244, %95, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x4x5xbf16>, tensor<2x2x5x4xbf16>) -> tensor<2x2x5x5xbf16>
    %246 = stablehlo.dot_general %244, %116, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x4x5xbf16>, tensor<2x2x5x5xbf16>) -> tensor<2x2x4x5xbf16>
    %247 = stablehlo.transpose %246, dims = [0, 1, 3, 2] : (tensor<2x2x4x5xbf16>) -> tensor<2x2x5x4xbf16>
    %248 = stablehlo.broadcast_in_dim %119, dims = [0, 1, 2, 3] : (tensor<2x2x5x1xbf16>) -> tensor<2x2x5x5xbf16>
    %249 = stablehlo.multiply %245, %248 : tensor<2x2x5x5xbf16>
    %250 = stablehlo.multiply %249, %110 : tensor<2x2x5x5xbf16>
    %cst_56 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %251 = stablehlo.reduce(%250 init: %cst_56) applies stablehlo.add across dimensions = [3] : (tensor<2x2x5x5xbf16>, tensor<bf16>) -> tensor<2x2x5xbf16>
    %252 = stablehlo.reshape %251 : (tensor<2x2x5xbf16>) -> tensor<2x2x5x1xbf16>
    %253 = stablehlo.negate %252 : tensor<2x2x5x1xbf16>
    %254 = stablehlo.broadcast_in_dim %114, dims = [0, 1, 2, 3] : (tensor<2x2x5x1xbf16>) -> tensor<2x2x5x5xbf16>
    %255 = stablehlo.divide %245, %254 : tensor<2x2x5x5xbf16>
    %256 = stablehlo.convert %253 : (tensor<2x2x5x1xbf16>) -> tensor<2x2x5x1xf32>
    %cst_57 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %257 = stablehlo.reduce(%256 init: %cst_57) applies stablehlo.add across dimensions = [3] : (tensor<2x2x5x1xf32>, tensor<f32>) -> tensor<2x2x5xf32>
    %258 = stablehlo.broadcast_in_dim %257, dims = [0, 1, 2] : (tensor<2x2x5xf32>) -> tensor<2x2x5x5xf32>
    %259 = stablehlo.convert %258 : (tensor<2x2x5x5xf32>) -> tensor<2x2x5x5xbf16>
    %260 = stablehlo.add %255, %259 : tensor<2x2x5x5xbf16>
    %261 = stablehlo.multiply %260, %110 : tensor<2x2x5x5xbf16>
    %262 = call @_where_4(%103#1, %261) : (tensor<2x2x5x5xi1>, tensor<2x2x5x5xbf16>) -> tensor<2x2x5x5xbf16>
    %263 = stablehlo.broadcast_in_dim %98, dims = [] : (tensor<bf16>) -> tensor<2x2x5x5xbf16>
    %264 = stablehlo.divide %262, %263 : tensor<2x2x5x5xbf16>
    %265 = stablehlo.dot_general %264, %41, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x5x5xbf16>, tensor<2x2x5x4xbf16>) -> tensor<2x2x5x4xbf16>
    %266 = stablehlo.dot_general %264, %68, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x5x5xbf16>, tensor<2x2x5x4xbf16>) -> tensor<2x2x5x4xbf16>
    %267 = stablehlo.transpose %247, dims = [1, 3, 0, 2] : (tensor<2x2x5x4xbf16>) -> tensor<2x4x2x5xbf16>
    %268 = stablehlo.dot_general %267, %14, contracting_dims = [0, 1] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x2x5xbf16>, tensor<8x2x4xbf16>) -> tensor<2x5x8xbf16>
    %269 = stablehlo.dot_general %267, %93, contracting_dims = [2, 3] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x4x2x5xbf16>, tensor<2x5x8xbf16>) -> tensor<2x4x8xbf16>
    %270 = stablehlo.transpose %269, dims = [2, 0, 1] : (tensor<2x4x8xbf16>) -> tensor<8x2x4xbf16>
    %271 = stablehlo.multiply %76, %268 : tensor<2x5x8xbf16>
    %cst_58 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %272 = stablehlo.reduce(%271 init: %cst_58) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xbf16>, tensor<bf16>) -> tensor<2x5xbf16>
    %273 = stablehlo.reshape %272 : (tensor<2x5xbf16>) -> tensor<2x5x1xbf16>
    %274 = stablehlo.broadcast_in_dim %88, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %275 = stablehlo.multiply %268, %274 : tensor<2x5x8xbf16>
    %276 = stablehlo.multiply %273, %91 : tensor<2x5x1xbf16>
    %277 = stablehlo.convert %276 : (tensor<2x5x1xbf16>) -> tensor<2x5x1xf32>
    %cst_59 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %278 = stablehlo.broadcast_in_dim %cst_59, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %279 = stablehlo.divide %277, %278 : tensor<2x5x1xf32>
    %cst_60 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %280 = stablehlo.reduce(%279 init: %cst_60) applies stablehlo.add across dimensions = [2] : (tensor<2x5x1xf32>, tensor<f32>) -> tensor<2x5xf32>
    %281 = stablehlo.broadcast_in_dim %280, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x8xf32>
    %282 = stablehlo.convert %281 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %283 = stablehlo.multiply %282, %79 : tensor<2x5x8xbf16>
    %284 = stablehlo.add %275, %283 : tensor<2x5x8xbf16>
    %285 = stablehlo.negate %284 : tensor<2x5x8xbf16>
    %cst_61 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %286 = stablehlo.reduce(%285 init: %cst_61) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xbf16>, tensor<bf16>) -> tensor<2x5xbf16>
    %287 = stablehlo.reshape %286 : (tensor<2x5xbf16>) -> tensor<2x5x1xbf16>
    %288 = stablehlo.add %240, %284 : tensor<2x5x8xbf16>
    %289 = stablehlo.convert %287 : (tensor<2x5x1xbf16>) -> tensor<2x5x1xf32>
    %cst_62 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %290 = stablehlo.broadcast_in_dim %cst_62, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %291 = stablehlo.divide %289, %290 : tensor<2x5x1xf32>
    %cst_63 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %292 = stablehlo.reduce(%291 init: %cst_63) applies stablehlo.add across dimensions = [2] : (tensor<2x5x1xf32>, tensor<f32>) -> tensor<2x5xf32>
    %293 = stablehlo.broadcast_in_dim %292, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x8xf32>
    %294 = stablehlo.convert %293 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %295 = stablehlo.add %288, %294 : tensor<2x5x8xbf16>
    %296 = stablehlo.transpose %265, dims = [1, 3, 0, 2] : (tensor<2x2x5x4xbf16>) -> tensor<2x4x2x5xbf16>
    %297 = stablehlo.dot_general %296, %10, contracting_dims = [0, 1] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x2x5xbf16>, tensor<8x2x4xbf16>) -> tensor<2x5x8xbf16>
    %298 = stablehlo.dot_general %296, %66, contracting_dims = [2, 3] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x4x2x5xbf16>, tensor<2x5x8xbf16>) -> tensor<2x4x8xbf16>
    %299 = stablehlo.transpose %298, dims = [2, 0, 1] : (tensor<2x4x8xbf16>) -> tensor<8x2x4xbf16>
    %300 = stablehlo.multiply %49, %297 : tensor<2x5x8xbf16>
    %cst_64 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %301 = stablehlo.reduce(%300 init: %cst_64) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xbf16>, tensor<bf16>) -> tensor<2x5xbf16>
    %302 = stablehlo.reshape %301 : (tensor<2x5xbf16>) -> tensor<2x5x1xbf16>
    %303 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %304 = stablehlo.multiply %297, %303 : tensor<2x5x8xbf16>
    %305 = stablehlo.multiply %302, %64 : tensor<2x5x1xbf16>
    %306 = stablehlo.convert %305 : (tensor<2x5x1xbf16>) -> tensor<2x5x1xf32>
    %cst_65 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %307 = stablehlo.broadcast_in_dim %cst_65, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %308 = stablehlo.divide %306, %307 : tensor<2x5x1xf32>
    %cst_66 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %309 = stablehlo.reduce(%308 init: %cst_66) applies stablehlo.add across dimensions = [2] : (tensor<2x5x1xf32>, tensor<f32>) -> tensor<2x5xf32>
    %310 = stablehlo.broadcast_in_dim %309, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x8xf32>
    %311 = stablehlo.convert %310 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %312 = stablehlo.multiply %311, %52 : tensor<2x5x8xbf16>
    %313 = stablehlo.add %304, %312 : tensor<2x5x8xbf16>
    %314 = stablehlo.negate %313 : tensor<2x5x8xbf16>
    %cst_67 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %315 = stablehlo.reduce(%314 init: %cst_67) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xbf16>, tensor<bf16>) -> tensor<2x5xbf16>
    %316 = stablehlo.reshape %315 : (tensor<2x5xbf16>) -> tensor<2x5x1xbf16>
    %317 = stablehlo.add %295, %313 : tensor<2x5x8xbf16>
    %318 = stablehlo.convert %316 : (tensor<2x5x1xbf16>) -> tensor<2x5x1xf32>
    %cst_68 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %319 = stablehlo.broadcast_in_dim %cst_68, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %320 = stablehlo.divide %318, %319 : tensor<2x5x1xf32>
    %cst_69 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %321 = stablehlo.reduce(%320 init: %cst_69) applies stablehlo.add across dimensions = [2] : (tensor<2x5x1xf32>, tensor<f32>) -> tensor<2x5xf32>
    %322 = stablehlo.broadcast_in_dim %321, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x8xf32>
    %323 = stablehlo.convert %322 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %324 = stablehlo.add %317, %323 : tensor<2x5x8xbf16>
    %325 = stablehlo.transpose %266, dims = [1, 3, 0, 2] : (tensor<2x2x5x4xbf16>) -> tensor<2x4x2x5xbf16>
    %326 = stablehlo.dot_general %325, %12, contracting_dims = [0, 1] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x2x5xbf16>, tensor<8x2x4xbf16>) -> tensor<2x5x8xbf16>
    %327 = stablehlo.dot_general %325, %39, contracting_dims = [2, 3] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x4x2x5xbf16>, tensor<2x5x8xbf16>) -> tensor<2x4x8xbf16>
    %328 = stablehlo.transpose %327, dims = [2, 0, 1] : (tensor<2x4x8xbf16>) -> tensor<8x2x4xbf16>
    %329 = stablehlo.multiply %22, %326 : tensor<2x5x8xbf16>
    %cst_70 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %330 = stablehlo.reduce(%329 init: %cst_70) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xbf16>, tensor<bf16>) -> tensor<2x5xbf16>
    %331 = stablehlo.reshape %330 : (tensor<2x5xbf16>) -> tensor<2x5x1xbf16>
    %332 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2] : (tensor<2x5x1xbf16>) -> tensor<2x5x8xbf16>
    %333 = stablehlo.multiply %326, %332 : tensor<2x5x8xbf16>
    %334 = stablehlo.multiply %331, %37 : tensor<2x5x1xbf16>
    %335 = stablehlo.convert %334 : (tensor<2x5x1xbf16>) -> tensor<2x5x1xf32>
    %cst_71 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %336 = stablehlo.broadcast_in_dim %cst_71, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %337 = stablehlo.divide %335, %336 : tensor<2x5x1xf32>
    %cst_72 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %338 = stablehlo.reduce(%337 init: %cst_72) applies stablehlo.add across dimensions = [2] : (tensor<2x5x1xf32>, tensor<f32>) -> tensor<2x5xf32>
    %339 = stablehlo.broadcast_in_dim %338, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x8xf32>
    %340 = stablehlo.convert %339 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %341 = stablehlo.multiply %340, %25 : tensor<2x5x8xbf16>
    %342 = stablehlo.add %333, %341 : tensor<2x5x8xbf16>
    %343 = stablehlo.negate %342 : tensor<2x5x8xbf16>
    %cst_73 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %344 = stablehlo.reduce(%343 init: %cst_73) applies stablehlo.add across dimensions = [2] : (tensor<2x5x8xbf16>, tensor<bf16>) -> tensor<2x5xbf16>
    %345 = stablehlo.reshape %344 : (tensor<2x5xbf16>) -> tensor<2x5x1xbf16>
    %346 = stablehlo.add %324, %342 : tensor<2x5x8xbf16>
    %347 = stablehlo.convert %345 : (tensor<2x5x1xbf16>) -> tensor<2x5x1xf32>
    %cst_74 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %348 = stablehlo.broadcast_in_dim %cst_74, dims = [] : (tensor<f32>) -> tensor<2x5x1xf32>
    %349 = stablehlo.divide %347, %348 : tensor<2x5x1xf32>
    %cst_75 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %350 = stablehlo.reduce(%349 init: %cst_75) applies stablehlo.add across dimensions = [2] : (tensor<2x5x1xf32>, tensor<f32>) -> tensor<2x5xf32>
    %351 = stablehlo.broadcast_in_dim %350, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x8xf32>
    %352 = stablehlo.convert %351 : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>
    %353 = stablehlo.add %346, %352 : tensor<2x5x8xbf16>
    %354 = stablehlo.convert %270 : (tensor<8x2x4xbf16>) -> tensor<8x2x4xf32>
    %355 = stablehlo.convert %214 : (tensor<8x16xbf16>) -> tensor<8x16xf32>
    %356 = stablehlo.convert %328 : (tensor<8x2x4xbf16>) -> tensor<8x2x4xf32>
    %357 = stablehlo.convert %242 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
    %358 = stablehlo.convert %299 : (tensor<8x2x4xbf16>) -> tensor<8x2x4xf32>
    %359 = stablehlo.convert %197 : (tensor<16x8xbf16>) -> tensor<16x8xf32>
    %360 = stablehlo.convert %353 : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>
    %cst_76 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %361 = stablehlo.broadcast_in_dim %cst_76, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %362 = "stablehlo.scatter"(%361, %6, %360) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg9: tensor<f32>, %arg10: tensor<f32>):
      %385 = stablehlo.add %arg9, %arg10 : tensor<f32>
      stablehlo.return %385 : tensor<f32>
    }) : (tensor<16x8xf32>, tensor<2x5x1xi32>, tensor<2x5x8xf32>) -> tensor<16x8xf32>
    %363 = stablehlo.add %191, %362 : tensor<16x8xf32>
    %cst_77 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %364 = stablehlo.broadcast_in_dim %cst_77, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %365 = stablehlo.multiply %364, %363 : tensor<16x8xf32>
    %366 = stablehlo.subtract %arg0, %365 : tensor<16x8xf32>
    %cst_78 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %367 = stablehlo.broadcast_in_dim %cst_78, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %368 = stablehlo.multiply %367, %359 : tensor<16x8xf32>
    %369 = stablehlo.subtract %arg1, %368 : tensor<16x8xf32>
    %cst_79 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %370 = stablehlo.broadcast_in_dim %cst_79, dims = [] : (tensor<f32>) -> tensor<8x2x4xf32>
    %371 = stablehlo.multiply %370, %358 : tensor<8x2x4xf32>
    %372 = stablehlo.subtract %arg2, %371 : tensor<8x2x4xf32>
    %cst_80 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %373 = stablehlo.broadcast_in_dim %cst_80, dims = [] : (tensor<f32>) -> tensor<2x4x8xf32>
    %374 = stablehlo.multiply %373, %357 : tensor<2x4x8xf32>
    %375 = stablehlo.subtract %arg3, %374 : tensor<2x4x8xf32>
    %cst_81 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %376 = stablehlo.broadcast_in_dim %cst_81, dims = [] : (tensor<f32>) -> tensor<8x2x4xf32>
    %377 = stablehlo.multiply %376, %356 : tensor<8x2x4xf32>
    %378 = stablehlo.subtract %arg4, %377 : tensor<8x2x4xf32>
    %cst_82 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %379 = stablehlo.broadcast_in_dim %cst_82, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %380 = stablehlo.multiply %379, %355 : tensor<8x16xf32>
    %381 = stablehlo.subtract %arg5, %380 : tensor<8x16xf32>
    %cst_83 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %382 = stablehlo.broadcast_in_dim %cst_83, dims = [] : (tensor<f32>) -> tensor<8x2x4xf32>
    %383 = stablehlo.multiply %382, %354 : tensor<8x2x4xf32>
    %384 = stablehlo.subtract %arg6, %383 : tensor<8x2x4xf32>
    return %366, %369, %372, %375, %378, %381, %384 : tensor<16x8xf32>, tensor<16x8xf32>, tensor<8x2x4xf32>, tensor<2x4x8xf32>, tensor<8x2x4xf32>, tensor<8x16xf32>, tensor<8x2x4xf32>
  }
  func.func private @tril(%arg0: tensor<5x5xi1>) -> tensor<5x5xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<5x5xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5x5xi32>
    %2 = stablehlo.add %0, %1 : tensor<5x5xi32>
    %3 = stablehlo.iota dim = 1 : tensor<5x5xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<5x5xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<5x5xi1>, tensor<5x5xi1>
    return %6 : tensor<5x5xi1>
  }
  func.func private @_where(%arg0: tensor<5x5xi1>, %arg1: tensor<2x2x5x5xbf16>, %arg2: tensor<f32>) -> (tensor<2x2x5x5xbf16>, tensor<2x2x5x5xi1>) {
    %0 = stablehlo.convert %arg2 : (tensor<f32>) -> tensor<bf16>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<5x5xi1>) -> tensor<2x2x5x5xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<bf16>) -> tensor<2x2x5x5xbf16>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x2x5x5xi1>, tensor<2x2x5x5xbf16>
    return %3, %1 : tensor<2x2x5x5xbf16>, tensor<2x2x5x5xi1>
  }
  func.func private @_bernoulli(%arg0: tensor<2xui32>, %arg1: tensor<f32>) -> tensor<2x5x8xi1> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = call @_uniform(%arg0, %cst, %cst_0) : (tensor<2xui32>, tensor<f32>, tensor<f32>) -> tensor<2x5x8xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x5x8xf32>
    %2 = stablehlo.compare LT, %0, %1, FLOAT : (tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<2x5x8xi1>
    return %2 : tensor<2x5x8xi1>
  }
  func.func private @_uniform(%arg0: tensor<2xui32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<2x5x8xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.convert %arg2 : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x1x1xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1x1x1xf32>
    %4 = stablehlo.slice %arg0 [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %5 = stablehlo.reshape %4 : (tensor<1xui32>) -> tensor<ui32>
    %6 = stablehlo.slice %arg0 [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %7 = stablehlo.reshape %6 : (tensor<1xui32>) -> tensor<ui32>
    %8 = stablehlo.iota dim = 0 : tensor<2x5x8xui64>
    %9 = stablehlo.iota dim = 1 : tensor<2x5x8xui64>
    %10 = stablehlo.iota dim = 2 : tensor<2x5x8xui64>
    %c = stablehlo.constant dense<40> : tensor<ui64>
    %11 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui64>) -> tensor<2x5x8xui64>
    %12 = stablehlo.multiply %11, %8 : tensor<2x5x8xui64>
    %c_0 = stablehlo.constant dense<8> : tensor<ui64>
    %13 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui64>) -> tensor<2x5x8xui64>
    %14 = stablehlo.multiply %13, %9 : tensor<2x5x8xui64>
    %c_1 = stablehlo.constant dense<1> : tensor<ui64>
    %15 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui64>) -> tensor<2x5x8xui64>
    %16 = stablehlo.multiply %15, %10 : tensor<2x5x8xui64>
    %17 = stablehlo.add %12, %14 : tensor<2x5x8xui64>
    %18 = stablehlo.add %17, %16 : tensor<2x5x8xui64>
    %c_2 = stablehlo.constant dense<32> : tensor<ui64>
    %19 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui64>) -> tensor<2x5x8xui64>
    %20 = stablehlo.shift_right_logical %18, %19 : tensor<2x5x8xui64>
    %21 = stablehlo.convert %18 : (tensor<2x5x8xui64>) -> tensor<2x5x8xui32>
    %22 = stablehlo.convert %20 : (tensor<2x5x8xui64>) -> tensor<2x5x8xui32>
    %23:2 = call @threefry2x32(%5, %7, %22, %21) : (tensor<ui32>, tensor<ui32>, tensor<2x5x8xui32>, tensor<2x5x8xui32>) -> (tensor<2x5x8xui32>, tensor<2x5x8xui32>)
    %24 = stablehlo.xor %23#0, %23#1 : tensor<2x5x8xui32>
    %c_3 = stablehlo.constant dense<9> : tensor<ui32>
    %25 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %26 = stablehlo.shift_right_logical %24, %25 : tensor<2x5x8xui32>
    %c_4 = stablehlo.constant dense<1065353216> : tensor<ui32>
    %27 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %28 = stablehlo.or %26, %27 : tensor<2x5x8xui32>
    %29 = stablehlo.bitcast_convert %28 : (tensor<2x5x8xui32>) -> tensor<2x5x8xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x5x8xf32>
    %31 = stablehlo.subtract %29, %30 : tensor<2x5x8xf32>
    %32 = stablehlo.subtract %3, %2 : tensor<1x1x1xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2] : (tensor<1x1x1xf32>) -> tensor<2x5x8xf32>
    %34 = stablehlo.multiply %31, %33 : tensor<2x5x8xf32>
    %35 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (tensor<1x1x1xf32>) -> tensor<2x5x8xf32>
    %36 = stablehlo.add %34, %35 : tensor<2x5x8xf32>
    %37 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (tensor<1x1x1xf32>) -> tensor<2x5x8xf32>
    %38 = stablehlo.maximum %37, %36 : tensor<2x5x8xf32>
    return %38 : tensor<2x5x8xf32>
  }
  func.func private @threefry2x32(%arg0: tensor<ui32>, %arg1: tensor<ui32>, %arg2: tensor<2x5x8xui32>, %arg3: tensor<2x5x8xui32>) -> (tensor<2x5x8xui32>, tensor<2x5x8xui32>) {
    %0 = stablehlo.xor %arg0, %arg1 : tensor<ui32>
    %c = stablehlo.constant dense<466688986> : tensor<ui32>
    %1 = stablehlo.xor %0, %c : tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %3 = stablehlo.add %arg2, %2 : tensor<2x5x8xui32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %5 = stablehlo.add %arg3, %4 : tensor<2x5x8xui32>
    %6 = stablehlo.add %3, %5 : tensor<2x5x8xui32>
    %c_0 = stablehlo.constant dense<13> : tensor<ui32>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %8 = stablehlo.shift_left %5, %7 : tensor<2x5x8xui32>
    %c_1 = stablehlo.constant dense<19> : tensor<ui32>
    %9 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %10 = stablehlo.shift_right_logical %5, %9 : tensor<2x5x8xui32>
    %11 = stablehlo.or %8, %10 : tensor<2x5x8xui32>
    %12 = stablehlo.xor %6, %11 : tensor<2x5x8xui32>
    %13 = stablehlo.add %6, %12 : tensor<2x5x8xui32>
    %c_2 = stablehlo.constant dense<15> : tensor<ui32>
    %14 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %15 = stablehlo.shift_left %12, %14 : tensor<2x5x8xui32>
    %c_3 = stablehlo.constant dense<17> : tensor<ui32>
    %16 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %17 = stablehlo.shift_right_logical %12, %16 : tensor<2x5x8xui32>
    %18 = stablehlo.or %15, %17 : tensor<2x5x8xui32>
    %19 = stablehlo.xor %13, %18 : tensor<2x5x8xui32>
    %20 = stablehlo.add %13, %19 : tensor<2x5x8xui32>
    %c_4 = stablehlo.constant dense<26> : tensor<ui32>
    %21 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %22 = stablehlo.shift_left %19, %21 : tensor<2x5x8xui32>
    %c_5 = stablehlo.constant dense<6> : tensor<ui32>
    %23 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %24 = stablehlo.shift_right_logical %19, %23 : tensor<2x5x8xui32>
    %25 = stablehlo.or %22, %24 : tensor<2x5x8xui32>
    %26 = stablehlo.xor %20, %25 : tensor<2x5x8xui32>
    %27 = stablehlo.add %20, %26 : tensor<2x5x8xui32>
    %c_6 = stablehlo.constant dense<6> : tensor<ui32>
    %28 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %29 = stablehlo.shift_left %26, %28 : tensor<2x5x8xui32>
    %c_7 = stablehlo.constant dense<26> : tensor<ui32>
    %30 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %31 = stablehlo.shift_right_logical %26, %30 : tensor<2x5x8xui32>
    %32 = stablehlo.or %29, %31 : tensor<2x5x8xui32>
    %33 = stablehlo.xor %27, %32 : tensor<2x5x8xui32>
    %34 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %35 = stablehlo.add %27, %34 : tensor<2x5x8xui32>
    %36 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %37 = stablehlo.add %33, %36 : tensor<2x5x8xui32>
    %c_8 = stablehlo.constant dense<1> : tensor<ui32>
    %38 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %39 = stablehlo.add %37, %38 : tensor<2x5x8xui32>
    %40 = stablehlo.add %35, %39 : tensor<2x5x8xui32>
    %c_9 = stablehlo.constant dense<17> : tensor<ui32>
    %41 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %42 = stablehlo.shift_left %39, %41 : tensor<2x5x8xui32>
    %c_10 = stablehlo.constant dense<15> : tensor<ui32>
    %43 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %44 = stablehlo.shift_right_logical %39, %43 : tensor<2x5x8xui32>
    %45 = stablehlo.or %42, %44 : tensor<2x5x8xui32>
    %46 = stablehlo.xor %40, %45 : tensor<2x5x8xui32>
    %47 = stablehlo.add %40, %46 : tensor<2x5x8xui32>
    %c_11 = stablehlo.constant dense<29> : tensor<ui32>
    %48 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %49 = stablehlo.shift_left %46, %48 : tensor<2x5x8xui32>
    %c_12 = stablehlo.constant dense<3> : tensor<ui32>
    %50 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %51 = stablehlo.shift_right_logical %46, %50 : tensor<2x5x8xui32>
    %52 = stablehlo.or %49, %51 : tensor<2x5x8xui32>
    %53 = stablehlo.xor %47, %52 : tensor<2x5x8xui32>
    %54 = stablehlo.add %47, %53 : tensor<2x5x8xui32>
    %c_13 = stablehlo.constant dense<16> : tensor<ui32>
    %55 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %56 = stablehlo.shift_left %53, %55 : tensor<2x5x8xui32>
    %c_14 = stablehlo.constant dense<16> : tensor<ui32>
    %57 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %58 = stablehlo.shift_right_logical %53, %57 : tensor<2x5x8xui32>
    %59 = stablehlo.or %56, %58 : tensor<2x5x8xui32>
    %60 = stablehlo.xor %54, %59 : tensor<2x5x8xui32>
    %61 = stablehlo.add %54, %60 : tensor<2x5x8xui32>
    %c_15 = stablehlo.constant dense<24> : tensor<ui32>
    %62 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %63 = stablehlo.shift_left %60, %62 : tensor<2x5x8xui32>
    %c_16 = stablehlo.constant dense<8> : tensor<ui32>
    %64 = stablehlo.broadcast_in_dim %c_16, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %65 = stablehlo.shift_right_logical %60, %64 : tensor<2x5x8xui32>
    %66 = stablehlo.or %63, %65 : tensor<2x5x8xui32>
    %67 = stablehlo.xor %61, %66 : tensor<2x5x8xui32>
    %68 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %69 = stablehlo.add %61, %68 : tensor<2x5x8xui32>
    %70 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %71 = stablehlo.add %67, %70 : tensor<2x5x8xui32>
    %c_17 = stablehlo.constant dense<2> : tensor<ui32>
    %72 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %73 = stablehlo.add %71, %72 : tensor<2x5x8xui32>
    %74 = stablehlo.add %69, %73 : tensor<2x5x8xui32>
    %c_18 = stablehlo.constant dense<13> : tensor<ui32>
    %75 = stablehlo.broadcast_in_dim %c_18, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %76 = stablehlo.shift_left %73, %75 : tensor<2x5x8xui32>
    %c_19 = stablehlo.constant dense<19> : tensor<ui32>
    %77 = stablehlo.broadcast_in_dim %c_19, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %78 = stablehlo.shift_right_logical %73, %77 : tensor<2x5x8xui32>
    %79 = stablehlo.or %76, %78 : tensor<2x5x8xui32>
    %80 = stablehlo.xor %74, %79 : tensor<2x5x8xui32>
    %81 = stablehlo.add %74, %80 : tensor<2x5x8xui32>
    %c_20 = stablehlo.constant dense<15> : tensor<ui32>
    %82 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %83 = stablehlo.shift_left %80, %82 : tensor<2x5x8xui32>
    %c_21 = stablehlo.constant dense<17> : tensor<ui32>
    %84 = stablehlo.broadcast_in_dim %c_21, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %85 = stablehlo.shift_right_logical %80, %84 : tensor<2x5x8xui32>
    %86 = stablehlo.or %83, %85 : tensor<2x5x8xui32>
    %87 = stablehlo.xor %81, %86 : tensor<2x5x8xui32>
    %88 = stablehlo.add %81, %87 : tensor<2x5x8xui32>
    %c_22 = stablehlo.constant dense<26> : tensor<ui32>
    %89 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %90 = stablehlo.shift_left %87, %89 : tensor<2x5x8xui32>
    %c_23 = stablehlo.constant dense<6> : tensor<ui32>
    %91 = stablehlo.broadcast_in_dim %c_23, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %92 = stablehlo.shift_right_logical %87, %91 : tensor<2x5x8xui32>
    %93 = stablehlo.or %90, %92 : tensor<2x5x8xui32>
    %94 = stablehlo.xor %88, %93 : tensor<2x5x8xui32>
    %95 = stablehlo.add %88, %94 : tensor<2x5x8xui32>
    %c_24 = stablehlo.constant dense<6> : tensor<ui32>
    %96 = stablehlo.broadcast_in_dim %c_24, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %97 = stablehlo.shift_left %94, %96 : tensor<2x5x8xui32>
    %c_25 = stablehlo.constant dense<26> : tensor<ui32>
    %98 = stablehlo.broadcast_in_dim %c_25, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %99 = stablehlo.shift_right_logical %94, %98 : tensor<2x5x8xui32>
    %100 = stablehlo.or %97, %99 : tensor<2x5x8xui32>
    %101 = stablehlo.xor %95, %100 : tensor<2x5x8xui32>
    %102 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %103 = stablehlo.add %95, %102 : tensor<2x5x8xui32>
    %104 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %105 = stablehlo.add %101, %104 : tensor<2x5x8xui32>
    %c_26 = stablehlo.constant dense<3> : tensor<ui32>
    %106 = stablehlo.broadcast_in_dim %c_26, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %107 = stablehlo.add %105, %106 : tensor<2x5x8xui32>
    %108 = stablehlo.add %103, %107 : tensor<2x5x8xui32>
    %c_27 = stablehlo.constant dense<17> : tensor<ui32>
    %109 = stablehlo.broadcast_in_dim %c_27, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %110 = stablehlo.shift_left %107, %109 : tensor<2x5x8xui32>
    %c_28 = stablehlo.constant dense<15> : tensor<ui32>
    %111 = stablehlo.broadcast_in_dim %c_28, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %112 = stablehlo.shift_right_logical %107, %111 : tensor<2x5x8xui32>
    %113 = stablehlo.or %110, %112 : tensor<2x5x8xui32>
    %114 = stablehlo.xor %108, %113 : tensor<2x5x8xui32>
    %115 = stablehlo.add %108, %114 : tensor<2x5x8xui32>
    %c_29 = stablehlo.constant dense<29> : tensor<ui32>
    %116 = stablehlo.broadcast_in_dim %c_29, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %117 = stablehlo.shift_left %114, %116 : tensor<2x5x8xui32>
    %c_30 = stablehlo.constant dense<3> : tensor<ui32>
    %118 = stablehlo.broadcast_in_dim %c_30, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %119 = stablehlo.shift_right_logical %114, %118 : tensor<2x5x8xui32>
    %120 = stablehlo.or %117, %119 : tensor<2x5x8xui32>
    %121 = stablehlo.xor %115, %120 : tensor<2x5x8xui32>
    %122 = stablehlo.add %115, %121 : tensor<2x5x8xui32>
    %c_31 = stablehlo.constant dense<16> : tensor<ui32>
    %123 = stablehlo.broadcast_in_dim %c_31, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %124 = stablehlo.shift_left %121, %123 : tensor<2x5x8xui32>
    %c_32 = stablehlo.constant dense<16> : tensor<ui32>
    %125 = stablehlo.broadcast_in_dim %c_32, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %126 = stablehlo.shift_right_logical %121, %125 : tensor<2x5x8xui32>
    %127 = stablehlo.or %124, %126 : tensor<2x5x8xui32>
    %128 = stablehlo.xor %122, %127 : tensor<2x5x8xui32>
    %129 = stablehlo.add %122, %128 : tensor<2x5x8xui32>
    %c_33 = stablehlo.constant dense<24> : tensor<ui32>
    %130 = stablehlo.broadcast_in_dim %c_33, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %131 = stablehlo.shift_left %128, %130 : tensor<2x5x8xui32>
    %c_34 = stablehlo.constant dense<8> : tensor<ui32>
    %132 = stablehlo.broadcast_in_dim %c_34, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %133 = stablehlo.shift_right_logical %128, %132 : tensor<2x5x8xui32>
    %134 = stablehlo.or %131, %133 : tensor<2x5x8xui32>
    %135 = stablehlo.xor %129, %134 : tensor<2x5x8xui32>
    %136 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %137 = stablehlo.add %129, %136 : tensor<2x5x8xui32>
    %138 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %139 = stablehlo.add %135, %138 : tensor<2x5x8xui32>
    %c_35 = stablehlo.constant dense<4> : tensor<ui32>
    %140 = stablehlo.broadcast_in_dim %c_35, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %141 = stablehlo.add %139, %140 : tensor<2x5x8xui32>
    %142 = stablehlo.add %137, %141 : tensor<2x5x8xui32>
    %c_36 = stablehlo.constant dense<13> : tensor<ui32>
    %143 = stablehlo.broadcast_in_dim %c_36, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %144 = stablehlo.shift_left %141, %143 : tensor<2x5x8xui32>
    %c_37 = stablehlo.constant dense<19> : tensor<ui32>
    %145 = stablehlo.broadcast_in_dim %c_37, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %146 = stablehlo.shift_right_logical %141, %145 : tensor<2x5x8xui32>
    %147 = stablehlo.or %144, %146 : tensor<2x5x8xui32>
    %148 = stablehlo.xor %142, %147 : tensor<2x5x8xui32>
    %149 = stablehlo.add %142, %148 : tensor<2x5x8xui32>
    %c_38 = stablehlo.constant dense<15> : tensor<ui32>
    %150 = stablehlo.broadcast_in_dim %c_38, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %151 = stablehlo.shift_left %148, %150 : tensor<2x5x8xui32>
    %c_39 = stablehlo.constant dense<17> : tensor<ui32>
    %152 = stablehlo.broadcast_in_dim %c_39, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %153 = stablehlo.shift_right_logical %148, %152 : tensor<2x5x8xui32>
    %154 = stablehlo.or %151, %153 : tensor<2x5x8xui32>
    %155 = stablehlo.xor %149, %154 : tensor<2x5x8xui32>
    %156 = stablehlo.add %149, %155 : tensor<2x5x8xui32>
    %c_40 = stablehlo.constant dense<26> : tensor<ui32>
    %157 = stablehlo.broadcast_in_dim %c_40, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %158 = stablehlo.shift_left %155, %157 : tensor<2x5x8xui32>
    %c_41 = stablehlo.constant dense<6> : tensor<ui32>
    %159 = stablehlo.broadcast_in_dim %c_41, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %160 = stablehlo.shift_right_logical %155, %159 : tensor<2x5x8xui32>
    %161 = stablehlo.or %158, %160 : tensor<2x5x8xui32>
    %162 = stablehlo.xor %156, %161 : tensor<2x5x8xui32>
    %163 = stablehlo.add %156, %162 : tensor<2x5x8xui32>
    %c_42 = stablehlo.constant dense<6> : tensor<ui32>
    %164 = stablehlo.broadcast_in_dim %c_42, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %165 = stablehlo.shift_left %162, %164 : tensor<2x5x8xui32>
    %c_43 = stablehlo.constant dense<26> : tensor<ui32>
    %166 = stablehlo.broadcast_in_dim %c_43, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %167 = stablehlo.shift_right_logical %162, %166 : tensor<2x5x8xui32>
    %168 = stablehlo.or %165, %167 : tensor<2x5x8xui32>
    %169 = stablehlo.xor %163, %168 : tensor<2x5x8xui32>
    %170 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %171 = stablehlo.add %163, %170 : tensor<2x5x8xui32>
    %172 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %173 = stablehlo.add %169, %172 : tensor<2x5x8xui32>
    %c_44 = stablehlo.constant dense<5> : tensor<ui32>
    %174 = stablehlo.broadcast_in_dim %c_44, dims = [] : (tensor<ui32>) -> tensor<2x5x8xui32>
    %175 = stablehlo.add %173, %174 : tensor<2x5x8xui32>
    return %171, %175 : tensor<2x5x8xui32>, tensor<2x5x8xui32>
  }
  func.func private @_where_0(%arg0: tensor<2x5x8xi1>, %arg1: tensor<2x5x8xbf16>, %arg2: tensor<i32>) -> tensor<2x5x8xbf16> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<bf16>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<bf16>) -> tensor<2x5x8xbf16>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<2x5x8xi1>, tensor<2x5x8xbf16>
    return %2 : tensor<2x5x8xbf16>
  }
  func.func private @log_softmax(%arg0: tensor<10x16xf32>) -> (tensor<10x16xf32>, tensor<10x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<10x16xf32>, tensor<f32>) -> tensor<10xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<10xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<10xf32>) -> tensor<10x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<10x1xf32>) -> tensor<10x16xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<10x16xf32>
    %6 = stablehlo.exponential %5 : tensor<10x16xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<10x16xf32>, tensor<f32>) -> tensor<10xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<10xf32>) -> tensor<10x1xf32>
    return %6, %8 : tensor<10x16xf32>, tensor<10x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<10x1xi32>) -> tensor<10x1x1xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<10x1xi32>
    %1 = stablehlo.compare LT, %arg0, %0, SIGNED : (tensor<10x1xi32>, tensor<10x1xi32>) -> tensor<10x1xi1>
    %c_0 = stablehlo.constant dense<16> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<10x1xi32>
    %3 = stablehlo.add %arg0, %2 : tensor<10x1xi32>
    %4 = stablehlo.select %1, %3, %arg0 : tensor<10x1xi1>, tensor<10x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<10x1xi32>) -> tensor<10x1x1xi32>
    return %5 : tensor<10x1x1xi32>
  }
  func.func private @take_along_axis_1(%arg0: tensor<10x1x1xi32>, %arg1: tensor<10x1xf32>) -> tensor<10x16xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<10x16xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<10x16xf32>, tensor<10x1x1xi32>, tensor<10x1xf32>) -> tensor<10x16xf32>
    return %1 : tensor<10x16xf32>
  }
  func.func private @log_softmax_2(%arg0: tensor<10x16xf32>, %arg1: tensor<10x1xf32>, %arg2: tensor<10x16xf32>) -> tensor<10x16xf32> {
    %0 = stablehlo.negate %arg2 : tensor<10x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<10x16xf32>, tensor<f32>) -> tensor<10xf32>
    %2 = stablehlo.reshape %1 : (tensor<10xf32>) -> tensor<10x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<10x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<10x1xf32>, tensor<f32>) -> tensor<10xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<10xf32>) -> tensor<10x16xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<10x16xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<10x16xf32>
    return %7 : tensor<10x16xf32>
  }
  func.func private @_where_3(%arg0: tensor<2x5x8xi1>, %arg1: tensor<2x5x8xbf16>) -> tensor<2x5x8xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<2x5x8xbf16>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x5x8xi1>, tensor<2x5x8xbf16>
    return %1 : tensor<2x5x8xbf16>
  }
  func.func private @_where_4(%arg0: tensor<2x2x5x5xi1>, %arg1: tensor<2x2x5x5xbf16>) -> tensor<2x2x5x5xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<2x2x5x5xbf16>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x2x5x5xi1>, tensor<2x2x5x5xbf16>
    return %1 : tensor<2x2x5x5xbf16>
  }
}
