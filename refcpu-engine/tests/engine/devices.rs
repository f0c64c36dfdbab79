//! Programs on several devices.

use super::*;

#[test]
fn a_group_meets_in_a_collective_that_others_do_not_come_to() {
    let text = r#"func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %id = stablehlo.replica_id : tensor<ui32>
      %two = stablehlo.constant dense<2> : tensor<ui32>
      %first = stablehlo.compare LT, %id, %two : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %0 = "stablehlo.if"(%first) ({
        %sum = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) : (tensor<f32>) -> tensor<f32>
        stablehlo.return %sum : tensor<f32>
      }, {
        %n = stablehlo.negate %x : tensor<f32>
        stablehlo.return %n : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      return %0 : tensor<f32>
    }"#;
    let rt = runtime();
    let plan = plan_for(text, &CompileOptions { num_replicas: 4, ..CompileOptions::default() });
    let inputs = [1.0, 2.0, 4.0, 8.0].map(|x| vec![kept(f32s(&rt, &[], &[x]))]);
    let got = run(&plan, &rt, inputs.to_vec(), &RunOptions::default()).unwrap();
    let got: Vec<f32> = got.iter().map(|lane| to_f32s(&lane[0])[0]).collect();
    assert_eq!(got, [3.0, 3.0, -4.0, -8.0]);
}

#[test]
fn replicas_meet_in_collectives() {
    let text = "func.func public @main(%arg0: tensor<f32>) -> (tensor<f32>, tensor<ui32>) {
       %0 = \"stablehlo.all_reduce\"(%arg0) <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> ({
       ^bb0(%a: tensor<f32>, %b: tensor<f32>):
         %s = stablehlo.add %a, %b : tensor<f32>
         stablehlo.return %s : tensor<f32>
       }) : (tensor<f32>) -> tensor<f32>
       %1 = stablehlo.replica_id : tensor<ui32>
       return %0, %1 : tensor<f32>, tensor<ui32>
     }";
    let rt = runtime();
    let plan = plan_for(text, &CompileOptions { num_replicas: 4, ..CompileOptions::default() });
    let inputs = (0..4).map(|i| vec![kept(f32s(&rt, &[], &[i as f32]))]).collect();
    let results = run(&plan, &rt, inputs, &RunOptions::default()).unwrap();
    let sums: Vec<f32> = results.iter().map(|r| to_f32s(&r[0])[0]).collect();
    assert_eq!(sums, [2., 4., 2., 4.]);
    assert_eq!(results.iter().map(|r| to_i32s(&r[1])[0]).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_manual_computation_runs_on_the_parts_of_its_operands() {
    let text = "module {
       sdy.mesh @mesh = <[\"i\"=4]>
       func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
         %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"i\"}]>] out_shardings=[<@mesh, [{\"i\"}]>] manual_axes={\"i\"} (%arg1: tensor<1xf32>) {
           %1 = \"stablehlo.all_reduce\"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>):
             %s = stablehlo.add %a, %b : tensor<f32>
             stablehlo.return %s : tensor<f32>
           }) : (tensor<1xf32>) -> tensor<1xf32>
           %2 = stablehlo.add %arg1, %1 : tensor<1xf32>
           sdy.return %2 : tensor<1xf32>
         } : (tensor<4xf32>) -> tensor<4xf32>
         return %0 : tensor<4xf32>
       }
     }";
    let rt = runtime();
    let options =
        CompileOptions { num_partitions: 4, use_spmd_partitioning: true, ..CompileOptions::default() };
    let plan = plan_for(text, &options);
    let inputs = vec![vec![kept(f32s(&rt, &[4], &[0., 1., 2., 3.]))]];
    let results = run(&plan, &rt, inputs, &RunOptions::default()).unwrap();
    assert_eq!(to_f32s(&results[0][0]), [6., 7., 8., 9.]);
}

#[test]
fn a_collective_over_devices_that_run_apart_is_refused() {
    // On whole arrays, what is within a computation over `i` runs for one position along `i` at a time.
    let text = r#"module {
      sdy.mesh @mesh = <["i"=2, "j"=2]>
      func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"i", ?}]>] out_shardings=[<@mesh, [{"i", ?}]>] manual_axes={"i"} (%y: tensor<2xf32>) {
          %1 = sdy.manual_computation(%y) in_shardings=[<@mesh, [{"j"}]>] out_shardings=[<@mesh, [{"j"}]>] manual_axes={"j"} (%z: tensor<1xf32>) {
            %2 = "stablehlo.all_reduce"(%z) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<GROUPS> : tensor<SIZExi64>, use_global_device_ids}> ({
              ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                %s = stablehlo.add %a, %b : tensor<f32>
                stablehlo.return %s : tensor<f32>
            }) : (tensor<1xf32>) -> tensor<1xf32>
            sdy.return %2 : tensor<1xf32>
          } : (tensor<2xf32>) -> tensor<2xf32>
          sdy.return %1 : tensor<2xf32>
        } : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }"#;
    let rt = runtime();
    let options =
        CompileOptions { num_partitions: 4, use_spmd_partitioning: true, ..CompileOptions::default() };
    let run_in = |groups: &str, size: &str| {
        let plan = plan_for(&text.replace("GROUPS", groups).replace("SIZE", size), &options);
        let inputs = vec![vec![kept(f32s(&rt, &[4], &[1., 2., 3., 4.]))]];
        run(&plan, &rt, inputs, &RunOptions::default())
    };
    let along_j = run_in("[[0, 1], [2, 3]]", "2x2").unwrap();
    assert_eq!(to_f32s(&along_j[0][0]), [3., 3., 7., 7.]);
    for (groups, size) in [("[[0, 2], [1, 3]]", "2x2"), ("[[0, 1, 2, 3]]", "1x4")] {
        assert_eq!(run_in(groups, size).unwrap_err().kind, RunErrorKind::Unimplemented, "{groups}");
    }
}
