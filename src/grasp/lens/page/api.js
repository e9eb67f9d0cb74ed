// Requests to the Lens's own server; relative addresses carry the token.

export async function ask(path) {
  return answered(await reached(fetch(path)));
}

export async function post(path, body) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return answered(await reached(fetch(path, options)));
}

async function reached(request) {
  try {
    return await request;
  } catch {
    throw new Error("the Lens does not answer any more; start `grasp lens` again and open the address it prints");
  }
}

async function answered(response) {
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

// Runs one task at a time; of those that come meanwhile only the newest is kept.
export function newest(task) {
  let running = false, waiting = null;
  return async function request(...given) {
    waiting = given;
    if (running) return;
    running = true;
    try {
      while (waiting) {
        const now = waiting;
        waiting = null;
        await task(...now);
      }
    } finally {
      running = false;
    }
  };
}
