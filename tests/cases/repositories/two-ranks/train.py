import argparse
import json
import os
import sys

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--out", default="runs/long")
options = parser.parse_args()

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(size * 32, 4)[rank::size]
targets = inputs.sum(dim=1, keepdim=True)
losses = []
for step in range(options.steps):
    optimizer.zero_grad()
    loss = ((model(inputs) - targets) ** 2).mean()
    loss.backward()
    for weights in model.parameters():
        dist.all_reduce(weights.grad)
        weights.grad /= size
    optimizer.step()
    mean = loss.detach()
    dist.all_reduce(mean)
    losses.append(round(mean.item() / size, 4))
if rank == 0:
    print(f"{size} ranks, loss {losses[0]} -> {losses[-1]}")
    os.makedirs(options.out, exist_ok=True)
    with open(os.path.join(options.out, "losses.json"), "w") as target:
        json.dump(losses, target)
    torch.save(model.state_dict(), os.path.join(options.out, "last.pt"))
dist.barrier()  # nobody leaves while another one still talks
dist.destroy_process_group()
sys.stdout.flush()
os._exit(0)  # while it unloads, gloo may abort
