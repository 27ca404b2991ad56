// SPDX-License-Identifier: Apache-2.0
// Uses every method of @nodeops-createos/sandbox (npm) that this server has a part for. The service:
// CAISSON_URL, CAISSON_KEY and CAISSON_OTHER_KEY (run_npm_sdk.py starts one).
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { randomBytes } from "node:crypto";

import * as sdk from "@nodeops-createos/sandbox";

const { CAISSON_URL: baseUrl, CAISSON_KEY: apiKey, CAISSON_OTHER_KEY: otherKey } = process.env;
const make = (key = apiKey) => new sdk.CreateosSandboxClient({ apiKey: key, baseUrl, retry: false });
const shape = "s-1vcpu-256mb";
const unique = () => `t-${randomBytes(6).toString("hex")}`;
const refused = (status) => (error) => {
  assert.equal(error.status ?? error.statusCode, status, String(error));
  return true;
};
const text = (buffer) => new TextDecoder().decode(buffer);
const collect = async (iterable) => {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
};

const client = make();
const made = [];
const create = async (fields = {}) => {
  const sandbox = await client.createSandbox({ shape, ...fields });
  made.push(sandbox);
  return sandbox;
};
after(async () => {
  for (const sandbox of made) await sandbox.destroy().catch(() => {});
});

describe("account", () => {
  test("health and whoami", async () => {
    assert.equal((await client.healthz()).up, true);
    assert.equal((await client.readyz()).ready, true);
    assert.equal(typeof (await client.whoami()).stats.total, "number");
    await assert.rejects(make("wrong").whoami(), sdk.CreateosSandboxAuthError);
  });
  test("catalogue", async () => {
    const shapes = await client.listShapes();
    assert.equal(shapes.find((one) => one.id === "s-2vcpu-4gb").mem_mib, 4096);
    const rootfs = await client.listRootfs();
    assert.ok(rootfs.rootfs.includes(rootfs.default));
  });
  test("hosts are for administrators", async () => {
    assert.equal((await client.listHosts()).length, 1);
    assert.equal((await collect(client.iterateHosts())).length, 1);
    await assert.rejects(make(otherKey).listHosts(), sdk.CreateosSandboxPermissionError);
  });
  test("networks between sandboxes", async () => {
    const network = await client.networks.create({ name: `net-${Date.now()}` });
    assert.ok((await collect(client.networks.iterate())).some((one) => one.id === network.id));
    const sandbox = await create();
    await sandbox.attachNetwork(network.id);
    assert.equal((await client.networks.get(network.id)).members[0].sandbox_id, sandbox.id);
    await assert.rejects(client.networks.delete(network.id), sdk.CreateosSandboxValidationError);
    await sandbox.detachNetwork(network.id);
    await client.networks.delete(network.id);
  });
  test("what does not exist says so", async () => {
    await assert.rejects(client.disks.list(), refused(501));
    const sandbox = await create();
    await assert.rejects(sandbox.attachNetwork("net-1"), refused(404));
    await assert.rejects(sandbox.listDisks(), refused(501));
    await assert.rejects(sandbox.addSSHPubkeys(["ssh-ed25519 AAAA"]), refused(501));
  });
});

describe("life", () => {
  test("create, get, list, delete", async () => {
    const name = unique();
    const sandbox = await create({ name, egress: ["240.0.0.0/4"], envs: { A: "1" } });
    assert.equal(sandbox.status, "running");
    assert.equal(sandbox.name, name);
    const again = await client.getSandbox(sandbox.id);
    assert.deepEqual(again.data.egress, ["240.0.0.0/4"]);
    assert.deepEqual(again.data.envs, ["A"]);
    assert.ok((await client.listSandboxes()).some((one) => one.id === sandbox.id));
    assert.ok((await collect(client.iterateSandboxes({ status: "running" }))).some((one) => one.id === sandbox.id));
    assert.equal((await client.listSandboxes({ limit: 1 })).length, 1);
    assert.equal((await client.getSandboxByIP(again.ip)).id, sandbox.id);
    const connected = await sdk.Sandbox.connect(sandbox.id, { apiKey, baseUrl });
    assert.equal(connected.id, sandbox.id);
    await assert.rejects(client.createSandbox({ shape, name }), sdk.CreateosSandboxValidationError);
    await assert.rejects(make(otherKey).getSandbox(sandbox.id), sdk.CreateosSandboxNotFoundError);
    assert.equal((await sandbox.destroy()).id, sandbox.id);
    await sandbox.waitUntilDestroyed({ timeoutMs: 10_000 });
    await sandbox.destroy();
  });
  test("errors carry messages and codes", async () => {
    await assert.rejects(client.createSandbox({ shape: "s-9" }), (error) => {
      assert.ok(error instanceof sdk.CreateosSandboxValidationError);
      assert.equal(error.code, "control.unknown_shape");
      assert.match(error.message, /s-9/);
      return true;
    });
    for (const fields of [{ name: "Upper" }, { auto_pause_after_seconds: 1 }, { envs: { "1A": "" } },
                          { region: "mars" }, { bandwidth_quota_bytes: 5 }, { shape: 5 }, { egress: "x" }]) {
      await assert.rejects(client.createSandbox({ shape, ...fields }), refused(400));
    }
    await assert.rejects(client.createSandbox({ shape, egress: ["no rule"] }), refused(422));
  });
  test("pause, resume, fork", async () => {
    const sandbox = await create({ envs: { WHO: "parent" } });
    await sandbox.files.upload("/root/kept", "kept");
    await assert.rejects(sandbox.fork(), sdk.CreateosSandboxValidationError);
    for (let i = 0; i < 2; ++i) {
      await sandbox.pause();
      await sandbox.waitUntilPaused({ timeoutMs: 10_000 });
      await assert.rejects(sandbox.runCommand("true"), refused(409));
      await assert.rejects(collect(sandbox.streamCommand("true")), refused(409));
      await assert.rejects(sandbox.files.download("/root/kept"), /sandbox is paused; resume it before accessing files/);
      await sandbox.resume();
      await sandbox.waitUntilRunning({ timeoutMs: 10_000 });
      assert.equal(text(await sandbox.files.download("/root/kept")), "kept");
    }
    await sandbox.pause();
    const child = await sandbox.fork();
    made.push(child);
    await child.waitUntilRunning({ timeoutMs: 20_000 });
    assert.equal(child.data.forked_from, sandbox.id);
    assert.equal(text(await child.files.download("/root/kept")), "kept");
    assert.equal((await child.runCommand("bash", ["-c", "echo $WHO"])).result.stdout, "parent\n");
  });
  test("changes", async () => {
    const sandbox = await create();
    assert.equal((await sandbox.setAutoPause(60)).data.auto_pause_after_seconds, 60);
    assert.equal((await sandbox.setAutoPause(null)).data.auto_pause_after_seconds, undefined);
    await sandbox.setIngress(true);
    assert.match(sandbox.data.ingress_url_template, /<port>/);
    await sandbox.setIngress(false);
    assert.equal(sandbox.data.ingress_url_template, undefined);
    const larger = sandbox.data.disk_mib + 512;
    assert.equal((await sandbox.resize(larger)).disk_mib, larger);
    await assert.rejects(sandbox.resize(1), refused(400));
    assert.equal((await sandbox.refresh()).data.disk_mib, larger);
  });
  test("egress and bandwidth", async () => {
    const sandbox = await create();
    assert.deepEqual((await sandbox.getEgress()).egress, []);
    assert.deepEqual((await sandbox.setEgress(["1.1.1.1:53"])).egress, ["1.1.1.1:53"]);
    await assert.rejects(sandbox.setEgress(["no rule"]), refused(422));
    assert.deepEqual((await sandbox.setEgress(null)).egress, []);
    const before = await sandbox.getBandwidth();
    assert.equal((await sandbox.rechargeBandwidth(7)).quota_bytes, before.quota_bytes + 7);
  });
});

describe("use", () => {
  let sandbox;
  before(async () => {
    sandbox = await create({ envs: { DECLARED: "1" } });
  });
  test("commands", async () => {
    const { result } = await sandbox.runCommand("bash", ["-c", "echo out; echo err >&2; exit 3"]);
    assert.deepEqual({ ...result }, { stdout: "out\n", stderr: "err\n", exit_code: 3 });
  });
  test("streams", async () => {
    const events = await collect(sandbox.streamCommand("bash", ["-c", "echo a; sleep 0.2; echo b >&2; exit 5"]));
    const joined = (type) => events.filter((one) => one.type === type).map((one) => one.data).join("");
    assert.equal(joined("stdout"), "a\n");
    assert.equal(joined("stderr"), "b\n");
    assert.equal(events.at(-1).exitCode ?? events.at(-1).exit_code, 5);
  });
  test("a stream that is left kills its command", async () => {
    const mark = unique();
    for await (const event of sandbox.streamCommand("bash", ["-c", `echo go; exec -a ${mark} sleep 300`])) {
      if (event.type === "stdout") break;
    }
    const lives = async () => (await sandbox.runCommand("bash",
      ["-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"])).result.stdout.includes(mark);
    for (let i = 0; i < 50 && (await lives()); ++i) await new Promise((done) => setTimeout(done, 200));
    assert.equal(await lives(), false);
  });
  test("files", async () => {
    const data = randomBytes(3_000_000);
    await sandbox.files.upload("/tmp/deep/er/file", data);
    assert.ok(Buffer.from(await sandbox.files.download("/tmp/deep/er/file")).equals(data));
    await assert.rejects(sandbox.files.download("/tmp/nothing"), sdk.CreateosSandboxNotFoundError);
    await assert.rejects(sandbox.files.upload("relative", "x"), refused(400));
  });
});
