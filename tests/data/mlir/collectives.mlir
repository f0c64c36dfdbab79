// Channels and groups, there and not there.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>) attributes {no_inline} {
    %0 = "stablehlo.collective_broadcast"(%a) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
      : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.collective_broadcast"(%0) {
      channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>,
      replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>
    } : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.all_gather"(%1) {
      all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids
    } : (tensor<4xf32>) -> tensor<8xf32>
    %3 = "stablehlo.collective_permute"(%1) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}
      : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "stablehlo.all_reduce"(%3) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, -1], [1, 2]]> : tensor<2x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %4, %2 : tensor<4xf32>, tensor<8xf32>
  }
}
