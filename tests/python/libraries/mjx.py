"""Simulates an arm of three joints that falls onto a plane, for four initial speeds, and differentiates a step."""

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

PACKAGES = ("mujoco-mjx", "mujoco")
TOLERANCE = 1e-4

MODEL = """
<mujoco>
  <option timestep="0.004" iterations="6" ls_iterations="6"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .6">
      <freejoint/>
      <geom type="capsule" size=".06" fromto="0 0 0 .3 0 0"/>
      <body pos=".3 0 0">
        <joint name="elbow" type="hinge" axis="0 1 0" damping=".1"/>
        <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/>
        <body pos=".3 0 0">
          <joint name="wrist" type="hinge" axis="0 0 1" damping=".1"/>
          <geom type="sphere" size=".08"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="elbow" gear="2"/><motor joint="wrist" gear="1"/></actuator>
</mujoco>
"""


def run():
    model = mjx.put_model(mujoco.MjModel.from_xml_string(MODEL))
    start = mjx.make_data(model)

    def step(data, time):
        data = mjx.step(model, data.replace(ctrl=jnp.stack([jnp.sin(6 * time), jnp.cos(4 * time)])))
        return data, data.qpos

    def path(speed):
        data = start.replace(qvel=start.qvel.at[3].set(speed))
        return jax.lax.scan(step, data, jnp.arange(120) * 0.004)[1]

    def height_after_a_step(ctrl):
        return mjx.step(model, start.replace(ctrl=ctrl)).qvel[2]

    paths = jax.jit(jax.vmap(path))(jnp.array([-1.0, 0.0, 1.0, 2.0]))
    return {"paths": paths, "jacobian": jax.jit(jax.jacfwd(height_after_a_step))(jnp.array([0.1, -0.1]))}
