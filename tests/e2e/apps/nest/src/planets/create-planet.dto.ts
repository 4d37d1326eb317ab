import { IsInt, IsNotEmpty, IsString, Max, Min } from 'class-validator';

export class CreatePlanet {
  @IsString()
  @IsNotEmpty()
  name: string;

  @IsInt()
  @Min(1)
  @Max(100_000)
  days: number;
}
