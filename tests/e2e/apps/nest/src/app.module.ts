declare function setTimeout(work: (value?: unknown) => void, milliseconds: number): unknown;
declare const console: { log(text: string): void };

import { BeforeApplicationShutdown, Module, OnApplicationShutdown, OnModuleDestroy } from '@nestjs/common';
import { ChatGateway } from './chat.gateway';
import { PlanetsModule } from './planets/planets.module';

@Module({ imports: [PlanetsModule], providers: [ChatGateway] })
export class AppModule implements OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown {
  onModuleDestroy() {
    console.log('hook: module destroyed');
  }

  beforeApplicationShutdown(signal?: string) {
    console.log(`hook: before shutdown by ${signal}`);
  }

  async onApplicationShutdown(signal?: string) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    console.log(`hook: shut down by ${signal}`);
  }
}
